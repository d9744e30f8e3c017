import { A } from "@solidjs/router";
import { For, type JSX, Show } from "solid-js";
import { counterLabels, counters } from "../lib/counters.ts";
import { byteSize, count, milliseconds } from "../lib/format.ts";
import { costLabel } from "../lib/money.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { requestsHref } from "../lib/requests-href.ts";
import { useKeyNamesQuery } from "../queries.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { type LoggedRequest, type RequestGroups, useRequestGroupsQuery } from "./queries.ts";
import { type RequestFilterName } from "./request-filters.ts";
import { changeLabel, outcomeHelp } from "./request-format.ts";
import { requestStory } from "./request-story.ts";
import { ResultBadge } from "./request-table.tsx";
import { type Phase, phasesOf } from "./request-timeline.ts";

/** One request: when it waited for what, and what Tollgate changed. Prompts and responses are not stored. */
export function RequestDrawer(props: { request: LoggedRequest; onClose: () => void }): JSX.Element {
  const rowButton = (): HTMLElement | null =>
    document.querySelector<HTMLElement>(`[data-request="${props.request.id}"]`);
  return (
    <Dialog
      title={`${props.request.method} ${props.request.path}`}
      drawer
      focusAfter={rowButton}
      onClose={() => props.onClose()}
    >
      <p class="drawer-result">
        <ResultBadge request={props.request} />{" "}
        <time datetime={props.request.ended_at}>{dateTimeLabel(Date.parse(props.request.ended_at))}</time>
      </p>
      <Story request={props.request} />
      <Timeline request={props.request} />
      <Show when={props.request.backend !== null}>
        <Changes request={props.request} />
        <h3>Tokens</h3>
        <Tokens request={props.request} />
      </Show>
      <h3>Request</h3>
      <Facts request={props.request} />
      <div class="dialog-actions">
        <Button onClick={() => props.onClose()}>Close</Button>
      </div>
    </Dialog>
  );
}

/** What happened, as sentences. Its sums are those of the group that it is alone in. */
function Story(props: { request: LoggedRequest }): JSX.Element {
  const keys = useKeyNamesQuery();
  const endedAt = (): number => Date.parse(props.request.ended_at);
  const groups = useRequestGroupsQuery(() => ({
    by: "outcome",
    request_id: props.request.request_id,
    since: new Date(endedAt()).toISOString(),
    until: new Date(endedAt() + 1).toISOString(),
  }));
  const sums = (): RequestGroups["total"] | undefined =>
    groups.data?.total.request_count === 1 ? groups.data.total : undefined;
  const cost = (): string | undefined => {
    const [known, currency] = [sums(), groups.data?.currency];
    return known && currency && known.cost !== null ? costLabel(known, currency) : undefined;
  };
  const maxConcurrency = (): number | null | undefined =>
    keys.data?.find(({ id }) => id === props.request.key_id)?.max_concurrency;
  const story = (): string[] =>
    requestStory(props.request, { maxConcurrency: maxConcurrency(), sums: sums(), cost: cost() });
  return (
    <p class="lead">
      {story().join(" ")}
      <Show when={outcomeHelp(props.request.outcome)}>
        {(to) => (
          <>
            {" "}
            <HandbookLink to={to()}>Why</HandbookLink>
          </>
        )}
      </Show>
    </p>
  );
}

function Timeline(props: { request: LoggedRequest }): JSX.Element {
  const total = (): number => Math.max(props.request.duration_ms, 0.001);
  return (
    <>
      <h3>
        Timeline <span class="faint">{milliseconds(props.request.duration_ms)}</span>
      </h3>
      <ol class="timeline">
        <For each={phasesOf(props.request)}>
          {(phase, index) => <TimelinePhase phase={phase} index={index()} total={total()} />}
        </For>
      </ol>
    </>
  );
}

const TimelinePhase = (props: { phase: Phase; index: number; total: number }): JSX.Element => (
  <li>
    <span>{props.phase.name}</span>
    <span class="value">{milliseconds(props.phase.toMs - props.phase.fromMs)}</span>
    <span
      class={`phase series-${props.index + 1}`}
      style={{ "--from": props.phase.fromMs / props.total, "--to": props.phase.toMs / props.total }}
      aria-hidden="true"
    />
  </li>
);

function Changes(props: { request: LoggedRequest }): JSX.Element {
  const detail = (change: string): string | undefined => {
    const { model_asked: asked, model_sent: sent, max_tokens_from: from, max_tokens_to: to } = props.request;
    if (change === "model") return `${asked ?? "none"} → ${sent ?? "none"}`;
    if (change === "max_tokens") return `${from === null ? "none" : count(from)} → ${to === null ? "none" : count(to)}`;
    return undefined;
  };
  return (
    <>
      <h3>What was changed</h3>
      <Show when={props.request.changes.length > 0} fallback={<p>Nothing: the backend got what the client sent.</p>}>
        <dl class="facts">
          <For each={props.request.changes}>
            {(change) => <Fact label={changeLabel(change)} value={detail(change) ?? "Changed"} />}
          </For>
        </dl>
      </Show>
    </>
  );
}

/** What the backend reported. */
function Tokens(props: { request: LoggedRequest }): JSX.Element {
  const known = (value: number | null): string | undefined => (value === null ? undefined : count(value));
  const isReported = (): boolean => counters.some((counter) => props.request[counter] !== null);
  return (
    <Show when={isReported()} fallback={<p>The backend reported none.</p>}>
      <dl class="facts">
        <For each={counters}>
          {(counter) => <Fact label={counterLabels[counter]} value={known(props.request[counter])} />}
        </For>
        <Fact label="Expected from cache" value={known(props.request.expected_cached_tokens)} />
      </dl>
    </Show>
  );
}

/** Without its version. */
const programOf = (client: string | null): string | null => client?.split("/")[0] ?? null;

function Facts(props: { request: LoggedRequest }): JSX.Element {
  const search = (name: RequestFilterName, value: string | number | null): string | undefined =>
    value === null ? undefined : requestsHref({ [name]: String(value) });
  return (
    <dl class="facts">
      <Fact
        label="API key"
        value={props.request.key_name ?? "None"}
        href={props.request.key_id === null ? undefined : `/keys/${props.request.key_id}`}
      />
      <Fact label="Team" value={props.request.team_name ?? undefined} href={search("team", props.request.team_id)} />
      <Fact label="User" value={props.request.user_name ?? undefined} href={search("user", props.request.user_id)} />
      <Fact label="Model requested" value={props.request.model_asked ?? undefined} />
      <Fact
        label="Model at the backend"
        value={props.request.model_sent ?? undefined}
        href={search("model", props.request.model_sent)}
      />
      <Fact
        label="Backend"
        value={props.request.backend ?? undefined}
        href={search("backend", props.request.backend)}
      />
      <Fact label="Client address" value={props.request.address} href={search("address", props.request.address)} />
      <Fact
        label="Client"
        value={props.request.client ?? undefined}
        href={search("client", programOf(props.request.client))}
      />
      <Fact label="Class" value={props.request.class ?? undefined} href={search("class", props.request.class)} />
      <Fact
        label="Conversation"
        value={props.request.conversation === null ? undefined : "All of its requests"}
        href={search("conversation", props.request.conversation)}
      />
      <Fact label="Error code" value={props.request.code ?? undefined} />
      <Fact label="Cause" value={props.request.cause ?? undefined} />
      <Fact label="Streamed" value={props.request.streamed ? "Yes" : "No"} />
      <Fact
        label="Response"
        value={props.request.response_bytes === null ? undefined : byteSize(props.request.response_bytes)}
      />
      <Fact label="Request id" value={props.request.request_id} href={search("id", props.request.request_id)} />
      <Fact
        label="Trace id"
        value={props.request.trace_id ?? undefined}
        href={search("trace", props.request.trace_id)}
      />
    </dl>
  );
}

/** A value that is not known is left out. @param props.href the requests, or the page, of this value */
function Fact(props: { label: string; value: string | undefined; href?: string | undefined }): JSX.Element {
  return (
    <Show when={props.value !== undefined}>
      <div>
        <dt>{props.label}</dt>
        <dd>
          <Show when={props.href} fallback={props.value}>
            {(href) => <A href={href()}>{props.value}</A>}
          </Show>
        </dd>
      </div>
    </Show>
  );
}
