import { A, useNavigate, useParams } from "@solidjs/router";
import { createSignal, type JSX, onCleanup, Show } from "solid-js";
import { compact, count, milliseconds, plural } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { dateTimeLabel, dayLabel } from "../lib/time-labels.ts";
import { type Key, useKeyQuery } from "../queries.ts";
import { FailuresPanel } from "../requests/failures-panel.tsx";
import { quantileOf } from "../requests/latency-bands.ts";
import { useKeyRequestsQuery } from "../requests/queries.ts";
import { Button, ToggleSwitch } from "../ui/controls.tsx";
import { Figure } from "../ui/figure.tsx";
import { Page } from "../ui/page.tsx";
import { RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { CostFigure } from "../usage/cost-figure.tsx";
import { UsageOf } from "../usage/usage-of.tsx";
import { DeleteKeyDialog } from "./delete-key-dialog.tsx";
import { KeyChart } from "./key-chart.tsx";
import { KeyDetails } from "./key-details.tsx";
import { isUsable } from "./key-list.ts";
import { useSwitchKey } from "./key-mutations.ts";
import { PageOfOne, UsersPanel } from "./members.tsx";
import { closeNewKeyDialogUnlessSecret, openRotationForm } from "./new-key.ts";
import { RenameField } from "./key-row.tsx";
import "../styles/lazy-pages.css";

/** Everything about one key. */
export function KeyPage(): JSX.Element {
  const parameters = useParams<{ id: string }>();
  const keys = useKeyQuery(() => idOf(parameters.id));
  const key = (): Key | undefined => keys.data?.find(({ id }) => String(id) === parameters.id);
  onCleanup(closeNewKeyDialogUnlessSecret);
  return (
    <Page
      title={key()?.name ?? (keys.data === undefined ? "API key" : `Key ${parameters.id}`)}
      help="keys-and-limits"
      sources={[{ name: "API keys", query: keys }]}
      actions={<Show when={key()}>{(known) => <KeyActions key={known()} />}</Show>}
    >
      <PageOfOne noun="key" query={keys} isThere={key() !== undefined} all={{ href: "/keys", title: "All API keys" }}>
        <KeyFigures key={key()} />
        {/* For another key, these start anew. */}
        <Show when={key()?.id} keyed>
          {(id) => (
            <>
              <Show when={key()}>{(known) => <KeyDetails key={known()} />}</Show>
              <Show when={key()?.users_from}>
                {(from) => <UsersPanel keyId={id} isShared={from().includes("@")} />}
              </Show>
              <KeyPanels id={id} />
            </>
          )}
        </Show>
      </PageOfOne>
    </Page>
  );
}

/** What is not an id becomes one that no key has. */
const idOf = (text: string): number => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER);

const KeyPanels = (props: { id: number }): JSX.Element => (
  <>
    <KeyChart keyId={props.id} />
    <KeyLatency id={props.id} />
    <FailuresPanel keyId={props.id} />
    <UsageOf filter={{ key: String(props.id) }} />
  </>
);

function KeyActions(props: { key: Key }): JSX.Element {
  const switchKey = useSwitchKey();
  const navigate = useNavigate();
  const [renaming, setRenaming] = createSignal(false);
  const [deleting, setDeleting] = createSignal(false);
  return (
    <>
      <Show when={renaming()}>
        <div class="keys">
          <RenameField key={props.key} onDone={() => setRenaming(false)} />
        </div>
      </Show>
      <code class="faint">{props.key.key}</code>
      <ToggleSwitch
        label={`${props.key.name} is active`}
        on={props.key.is_active}
        onChange={(isActive) => switchKey.mutate({ key: props.key, isActive })}
      />
      <Button disabled={renaming()} onClick={() => setRenaming(true)}>
        Rename
      </Button>
      <Button onClick={() => openRotationForm(props.key)}>New secret</Button>
      <A class="button" href={`/requests?key=${props.key.id}`}>
        Requests
      </A>
      <Button icon="trash" onClick={() => setDeleting(true)}>
        Delete
      </Button>
      <Show when={deleting()}>
        <DeleteKeyDialog key={props.key} onDelete={() => navigate("/keys")} onClose={() => setDeleting(false)} />
      </Show>
    </>
  );
}

function stateOf(key: Key): string {
  if (!key.is_active) return "Off";
  return isUsable(key, now()) ? "Active" : "Expired";
}

/** @param props.key undefined while it loads */
function KeyFigures(props: { key: Key | undefined }): JSX.Element {
  const created = (): number => Date.parse(props.key?.created_at ?? "");
  const total = (label: string, field: "total_request_count" | "total_input_tokens" | "total_output_tokens") => (
    <Figure
      label={label}
      value={props.key && compact(props.key[field])}
      exact={props.key && count(props.key[field])}
      note={
        <Show when={props.key}>
          <span title={`Created ${dateTimeLabel(created())}`}>Since {dayLabel(created())}</span>
        </Show>
      }
    />
  );
  return (
    <dl class="figures">
      {total("Requests", "total_request_count")}
      {total("Input tokens", "total_input_tokens")}
      {total("Output tokens", "total_output_tokens")}
      <Show when={props.key?.id}>{(id) => <CostFigure keyId={id()} />}</Show>
      <Figure
        label="State"
        value={props.key && stateOf(props.key)}
        note={
          <Show when={props.key}>
            {(key) => (
              <>
                Last used: <RelativeTimeOrNever at={key().last_used_at} />
              </>
            )}
          </Show>
        }
      />
    </dl>
  );
}

/** Computed from the last requests in the log: latency is not kept by key. */
function KeyLatency(props: { id: number }): JSX.Element {
  const requests = useKeyRequestsQuery(() => props.id);
  const values = (field: "first_byte_ms" | "duration_ms"): number[] =>
    (requests.data?.requests ?? [])
      .filter(({ streamed, status }) => status < 400 && (streamed || field === "duration_ms"))
      .flatMap((request) => request[field] ?? []);
  const figure = (label: string, field: "first_byte_ms" | "duration_ms", share: number, note: string) => {
    const value = (): string => {
      const ms = quantileOf(values(field), share);
      return ms === undefined ? "–" : milliseconds(ms);
    };
    return (
      <Figure
        label={label}
        value={requests.data && value()}
        failed={requests.isError}
        note={requests.data && `Of the last ${plural(values(field).length, note)}`}
      />
    );
  };
  return (
    <dl class="figures">
      {figure("First byte, median", "first_byte_ms", 0.5, "streamed response")}
      {figure("First byte, 95%", "first_byte_ms", 0.95, "streamed response")}
      {figure("Duration, median", "duration_ms", 0.5, "request")}
      {figure("Duration, 95%", "duration_ms", 0.95, "request")}
    </dl>
  );
}
