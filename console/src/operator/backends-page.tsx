import { A } from "@solidjs/router";
import { createSignal, For, type JSX, Match, onMount, Show, Switch } from "solid-js";
import { count, duration, milliseconds, plural, shareOf, threeDigits } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Page } from "../ui/page.tsx";
import { NotLoaded, Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import {
  type Backend,
  type Backends,
  modelsLeftAlone,
  othersOf,
  shortHash,
  useBackendsQuery,
  useDrain,
  verdictOf,
} from "./backends.ts";
import "../styles/lazy-pages.css";

/** Where requests go: which backends are in, and how each of them does. */
export function BackendsPage(): JSX.Element {
  const backends = useBackendsQuery();
  const [asked, setAsked] = createSignal<Backend>();
  return (
    <Page title="Backends" help="models-and-backends" sources={[{ name: "Backends", query: backends }]}>
      <SectionTabs section="settings" label="Settings" />
      <Show when={backends.data}>{(data) => <OtherFiles backends={data()} />}</Show>
      <section class="panel" aria-label="Backends">
        <Switch fallback={<BackendTable backends={backends.data?.backends} onAsk={setAsked} />}>
          <Match when={backends.data === undefined && backends.isError}>
            <NotLoaded query={backends} />
          </Match>
        </Switch>
        <Show when={backends.data}>{(data) => <TableFoot hash={data().file_hash} />}</Show>
      </section>
      <Show when={backends.data?.instances.length}>
        <InstancePanel instances={backends.data?.instances ?? []} hash={backends.data?.file_hash ?? null} />
      </Show>
      <Show when={asked()} keyed>
        {(backend) => (
          <DrainDialog backend={backend} all={backends.data?.backends ?? []} onClose={() => setAsked(undefined)} />
        )}
      </Show>
    </Page>
  );
}

const TableFoot = (props: { hash: string | null }): JSX.Element => (
  <p class="table-foot">
    Figures are of requests that ended in the last hour.{" "}
    <Show
      when={props.hash !== null}
      fallback={
        <>
          This backend is that of <code>PROXY_UPSTREAM_URL</code>; several stand in a file that <code>MODELS_FILE</code>{" "}
          names.
        </>
      }
    >
      The backends are those of <code>MODELS_FILE</code>.
    </Show>
  </p>
);

/** @param props.backends undefined while they load */
function BackendTable(props: { backends: Backend[] | undefined; onAsk: (backend: Backend) => void }): JSX.Element {
  return (
    <div class="table-scroll">
      <table class="cards-on-phone backends">
        <caption class="visually-hidden">Backends, in the order of the file</caption>
        <thead>
          <tr>
            <th scope="col">Backend</th>
            <th scope="col">State</th>
            <th scope="col" class="number">
              In flight
            </th>
            <th scope="col" class="number">
              Requests
            </th>
            <th scope="col" class="number">
              First byte
            </th>
            <th scope="col" class="number">
              Output
            </th>
            <th scope="col" class="number">
              From cache
            </th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <Show when={props.backends} fallback={<SkeletonRows columns={8} rows={3} />}>
            {(backends) => (
              <For each={backends()}>
                {(backend) => <BackendRow backend={backend} onAsk={() => props.onAsk(backend)} />}
              </For>
            )}
          </Show>
        </tbody>
      </table>
    </div>
  );
}

function BackendRow(props: { backend: Backend; onAsk: () => void }): JSX.Element {
  const drain = useDrain();
  const isDraining = (): boolean => props.backend.state === "draining";
  return (
    <tr>
      <th scope="row" class="backend-name">
        <A href={`/requests?${new URLSearchParams({ backend: props.backend.name }).toString()}`}>
          {props.backend.name}
        </A>
        <Show when={props.backend.spill}>
          {" "}
          <span class="badge" title="Used only while the others of a model are full or out">
            Spill
          </span>
        </Show>
        <Show when={!props.backend.url.endsWith(`//${props.backend.name}`)}>
          <span class="under">{props.backend.url}</span>
        </Show>
        <span class="under">{modelsLabel(props.backend.models)}</span>
      </th>
      <StateCell backend={props.backend} />
      <td class="number" data-label="In flight">
        {count(props.backend.in_flight)}
        {props.backend.max_concurrency === null ? "" : ` of ${count(props.backend.max_concurrency)}`}
        <Under text={props.backend.waiting === 0 ? undefined : `${count(props.backend.waiting)} waiting`} />
      </td>
      <td class="number" data-label="Requests">
        {count(props.backend.requests_1h)}
        <Errors backend={props.backend} />
      </td>
      <td class="number" data-label="First byte">
        {optional(props.backend.first_byte_p50_ms, milliseconds)}
        <Under text={slowest(props.backend)} />
      </td>
      <td class="number" data-label="Output">
        {optional(props.backend.output_tokens_per_second, threeDigits)}
        <Under text={props.backend.output_tokens_per_second === null ? undefined : "tokens/s a stream"} />
      </td>
      <td class="number" data-label="From cache">
        {optional(props.backend.cached_share, (share) => shareOf(share, 1))}
        <Under text={props.backend.cached_share === null ? undefined : "of the input"} />
      </td>
      <td class="row-actions">
        <button
          class="button"
          type="button"
          aria-label={`${isDraining() ? "Resume" : "Drain"} ${props.backend.name}`}
          disabled={drain.isPending}
          onClick={() => (isDraining() ? drain.mutate({ name: props.backend.name, draining: false }) : props.onAsk())}
        >
          {isDraining() ? "Resume" : "Drain"}
        </button>
      </td>
    </tr>
  );
}

function StateCell(props: { backend: Backend }): JSX.Element {
  const since = (): number => Date.parse(props.backend.since);
  return (
    <td data-label="State">
      <span class="badge" data-tone={verdictOf(props.backend).tone}>
        {verdictOf(props.backend).label}
      </span>
      <span class="under" title={`Since ${dateTimeLabel(since())}`}>
        for {duration(Math.max(0, now() - since()))}
      </span>
    </td>
  );
}

const Errors = (props: { backend: Backend }): JSX.Element => (
  <Show when={props.backend.errors_1h > 0}>
    <span class="under" data-tone="bad">
      {plural(props.backend.errors_1h, "error")}
    </span>
  </Show>
);

const Under = (props: { text: string | undefined }): JSX.Element => (
  <Show when={props.text}>
    <span class="under">{props.text}</span>
  </Show>
);

const optional = (value: number | null, format: (value: number) => string): string =>
  value === null ? "–" : format(value);

const slowest = ({ first_byte_p95_ms: p95 }: Backend): string | undefined =>
  p95 === null ? undefined : `95% within ${milliseconds(p95)}`;

const shownModels = 3;

function modelsLabel(models: readonly string[]): string {
  if (models.length === 0) return "Whatever it serves";
  const more = models.length - shownModels;
  return models.slice(0, shownModels).join(", ") + (more > 0 ? ` and ${plural(more, "other")}` : "");
}

/** Says what becomes of the requests. Cancel has the focus, so that Enter drains nothing. */
function DrainDialog(props: { backend: Backend; all: readonly Backend[]; onClose: () => void }): JSX.Element {
  const drain = useDrain();
  let cancel: HTMLButtonElement | undefined;
  onMount(() => cancel?.focus());
  const isLast = (): boolean => !props.all.some(({ name, state }) => name !== props.backend.name && state === "in");
  const alone = (): string[] => modelsLeftAlone(props.backend, props.all);
  return (
    <Dialog title={`Drain ${props.backend.name}?`} onClose={() => props.onClose()}>
      <p>
        It gets no new requests, from any process, until you resume it; a restart of Tollgate does not end that. What
        runs on it now ({plural(props.backend.in_flight, "request")}) goes on to its end.
      </p>
      <Show when={isLast() || alone().length > 0}>
        <div class="notice" data-tone="error">
          <Icon name="warning" />
          <p>
            {isLast()
              ? "No other backend is in. Every new request waits"
              : `No other backend that is in serves ${alone().join(" or ")}. Their requests wait`}{" "}
            as long as <code>PROXY_BACKEND_WAIT</code> says, and then fail: by default, at once.
          </p>
        </div>
      </Show>
      <div class="dialog-actions">
        <button class="button" type="button" ref={cancel} onClick={() => props.onClose()}>
          Cancel
        </button>
        <button
          class="button danger"
          type="button"
          onClick={() => {
            drain.mutate({ name: props.backend.name, draining: true });
            props.onClose();
          }}
        >
          Drain
        </button>
      </div>
    </Dialog>
  );
}

/** Processes take a changed file over within seconds, unless it is wrong where they read it. */
const OtherFiles = (props: { backends: Backends }): JSX.Element => (
  <Show when={othersOf(props.backends).length > 0}>
    <div class="notice" data-tone="error" role="note">
      <Icon name="warning" />
      <p>
        {plural(othersOf(props.backends).length, "process uses", "processes use")} another file of models than the one
        that shows this page. A changed file is taken over within seconds; the log of a process that refused it says
        why.
      </p>
    </div>
  </Show>
);

const InstancePanel = (props: { instances: Backends["instances"]; hash: string | null }): JSX.Element => (
  <Panel title="File of models" hint={plural(props.instances.length, "process", "processes")}>
    <div class="table-scroll">
      <table>
        <caption class="visually-hidden">The file that each process uses</caption>
        <thead>
          <tr>
            <th scope="col">Host/process</th>
            <th scope="col">SHA-256 of its file</th>
          </tr>
        </thead>
        <tbody>
          <For each={props.instances}>
            {(instance) => (
              <tr>
                <th scope="row">{instance.name}</th>
                <td>
                  <code title={instance.file_hash}>{shortHash(instance.file_hash)}</code>{" "}
                  <Show when={instance.file_hash !== props.hash}>
                    <span class="badge" data-tone="warn">
                      Differs
                    </span>
                  </Show>
                </td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
    </div>
  </Panel>
);
