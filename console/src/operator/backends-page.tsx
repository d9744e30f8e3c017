import { createSignal, type JSX, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import { BackendRow } from "./backend-row.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Icon } from "../ui/icon.tsx";
import { Page } from "../ui/page.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import {
  type Backend,
  type Backends,
  modelsLeftAlone,
  othersOf,
  shortHash,
  useBackendsQuery,
  useDrain,
} from "./backend-queries.ts";
import { ReconciliationPanel } from "./reconciliation-panel.tsx";
import "../styles/lazy-pages.css";
import { actions, numbers, Table } from "../ui/table.tsx";

/** Where requests go: which backends are in, and how each of them does. */
export function BackendsPage(): JSX.Element {
  const backends = useBackendsQuery();
  const [asked, setAsked] = createSignal<Backend>();
  return (
    <Page title="Backends" help="models-and-backends" sources={[{ name: "Backends", query: backends }]}>
      <SectionTabs section="backends" label="Backends" />
      <Show when={backends.data}>{(data) => <OtherFiles backends={data()} />}</Show>
      <section class="panel" aria-label="Backends">
        <Table
          caption="Backends, in the order of the file"
          class="backends"
          heads={[
            "Backend",
            "State",
            ...numbers("In flight", "Requests", "First byte", "Output", "From cache"),
            actions,
          ]}
          query={backends}
          rows={backends.data?.backends}
          skeleton={3}
        >
          {(backend) => <BackendRow backend={backend} onAsk={() => setAsked(backend)} />}
        </Table>
        <Show when={backends.data}>{(data) => <TableFoot backends={data()} />}</Show>
      </section>
      <ReconciliationPanel />
      <Show when={asked()} keyed>
        {(backend) => (
          <DrainDialog backend={backend} all={backends.data?.backends ?? []} onClose={() => setAsked(undefined)} />
        )}
      </Show>
    </Page>
  );
}

const TableFoot = (props: { backends: Backends }): JSX.Element => (
  <p class="table-foot">
    Figures are of requests that ended in the last hour.{" "}
    <Show
      when={props.backends.file_hash !== null}
      fallback={
        <>
          This backend is that of <code>PROXY_UPSTREAM_URL</code>; several stand in a file that <code>MODELS_FILE</code>{" "}
          names.
        </>
      }
    >
      The backends are those of <code>MODELS_FILE</code>.
    </Show>
    <Show when={props.backends.backends.some((one) => one.state === "out" || one.failing_since !== null)}>
      {" "}
      <HandbookLink to="models-and-backends#when-a-backend-is-out">When a backend is out</HandbookLink>
    </Show>
  </p>
);

/** Says what becomes of the requests. */
function DrainDialog(props: { backend: Backend; all: readonly Backend[]; onClose: () => void }): JSX.Element {
  const drain = useDrain();
  const isLast = (): boolean => !props.all.some(({ name, state }) => name !== props.backend.name && state === "in");
  const alone = (): string[] => modelsLeftAlone(props.backend, props.all);
  return (
    <ConfirmDialog
      title={`Take out ${props.backend.name} for maintenance?`}
      action="Take out"
      onConfirm={() => drain.mutate({ name: props.backend.name, draining: true })}
      onClose={() => props.onClose()}
    >
      <p>
        It gets no new requests, from any process, until you put it back; a restart of Tollgate does not end that. What
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
    </ConfirmDialog>
  );
}

/** Processes take a changed file over within seconds, unless it is wrong where they read it. */
const OtherFiles = (props: { backends: Backends }): JSX.Element => (
  <Show when={othersOf(props.backends).length > 0}>
    <div class="notice" data-tone="error" role="note">
      <Icon name="warning" />
      <p>
        Another file of models than that of this page ({shortHash(props.backends.file_hash ?? "none")}) is used by{" "}
        {othersOf(props.backends)
          .map(({ name, file_hash: hash }) => `${name} (${shortHash(hash)})`)
          .join(", ")}
        . A changed file is taken over within seconds; the log of a process that refused it says why.
      </p>
    </div>
  </Show>
);
