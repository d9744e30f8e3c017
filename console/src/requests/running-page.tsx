import { A } from "@solidjs/router";
import { createSignal, type JSX, Show } from "solid-js";
import { byteSize, count, duration } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { queueText } from "../lib/queue-text.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { useHasTeams, useHasUsers } from "../queries.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Button, SegmentedControl } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { type RunningRequest, useEndRequest, useRunningQuery } from "./queries.ts";
import type { RunningGrouping } from "./request-groups.ts";
import { RunningGroups } from "./running-groups.tsx";
import "../styles/lazy-pages.css";
import { actions, NumberCell, numbers, Table, TextCell } from "../ui/table.tsx";

const stateLabels = {
  receiving: "Reading the request",
  queued: "Waiting for its turn",
  prefill: "Waiting for prefill",
  waiting: "Waiting for the backend",
  running: "Responding",
} as const;

const groupings = [
  { value: "", label: "Each request" },
  { value: "key", label: "By key" },
  { value: "team", label: "By team" },
  { value: "user", label: "By user" },
] as const;

/** The requests that the backend works on now, oldest first. */
export function RunningPage(): JSX.Element {
  const running = useRunningQuery();
  const hasTeams = useHasTeams();
  const hasUsers = useHasUsers();
  const offered = () =>
    groupings.filter(({ value }) => (value !== "team" || hasTeams()) && (value !== "user" || hasUsers()));
  const [parameters, setParameters] = useUrlParameters<"by">();
  const by = (): RunningGrouping | undefined =>
    groupings.find(({ value }) => value === parameters.by)?.value || undefined;
  const [ending, setEnding] = createSignal<RunningRequest>();
  return (
    <Page title="Running now" help="watching#the-request-log" sources={[{ name: "Running requests", query: running }]}>
      <SectionTabs section="requests" label="Requests" />
      <Show when={queueText(running.data?.queue)}>{(text) => <p class="hint">{text()}</p>}</Show>
      <Show when={running.data?.requests.some(({ heartbeats_ms: ms }) => ms !== null)}>
        <p class="hint">
          A backend that sends only heartbeats for so long may hang: end the request, and restart the backend if others
          follow.
        </p>
      </Show>
      <Show when={hasTeams() || hasUsers() || by() !== undefined}>
        <div class="toolbar">
          <SegmentedControl
            label="Group by"
            options={offered()}
            value={by() ?? ""}
            onChange={(chosen) => setParameters({ by: chosen || undefined }, { replace: true })}
          />
        </div>
      </Show>
      <section class="panel" aria-label="Running requests">
        <Show
          when={running.data?.requests.length !== 0 && by()}
          fallback={
            <Table
              caption="Running requests, oldest first"
              class="running"
              heads={[
                "Running for",
                "Key",
                hasTeams() && { label: "Team", rank: "rank-2" },
                hasUsers() && { label: "User", rank: "rank-2" },
                "State",
                { label: "Model", rank: "rank-1" },
                { label: "Path", rank: "rank-3" },
                { label: "Client address", rank: "rank-3" },
                ...numbers("Output"),
                actions,
              ]}
              query={running}
              rows={running.data?.requests}
              empty={
                <EmptyState title="The backend is idle">
                  <p>Requests appear here while they run, and in the log once they have ended.</p>
                  <A class="button" href="/requests">
                    Open the log
                  </A>
                </EmptyState>
              }
            >
              {(request) => (
                <RunningRow
                  request={request}
                  hasTeams={hasTeams()}
                  hasUsers={hasUsers()}
                  onEnd={() => setEnding(request)}
                />
              )}
            </Table>
          }
        >
          {(chosen) => <RunningGroups requests={running.data?.requests ?? []} by={chosen()} />}
        </Show>
        <Show when={running.data?.more}>
          <p class="table-foot">Only the oldest {count(running.data?.requests.length ?? 0)} are shown.</p>
        </Show>
      </section>
      <Show when={ending()} keyed>
        {(request) => <EndDialog request={request} onClose={() => setEnding(undefined)} />}
      </Show>
    </Page>
  );
}

const nameOf = (request: RunningRequest): string => request.key_name ?? "a client without a key";

function RunningRow(props: {
  request: RunningRequest;
  hasTeams: boolean;
  hasUsers: boolean;
  onEnd: () => void;
}): JSX.Element {
  const startedAt = (): number => Date.parse(props.request.started_at);
  return (
    <tr>
      <th scope="row">
        <time datetime={props.request.started_at} title={`Since ${dateTimeLabel(startedAt())}`}>
          {duration(Math.max(0, now() - startedAt()))}
        </time>
      </th>
      <TextCell label="Key" text={props.request.key_name} href={`/keys/${props.request.key_id}`} none="None" />
      <Show when={props.hasTeams}>
        <TextCell
          label="Team"
          rank="rank-2"
          text={props.request.team_name}
          href={`/keys/teams/${props.request.team_id}`}
        />
      </Show>
      <Show when={props.hasUsers}>
        <TextCell label="User" rank="rank-2" text={props.request.user_name} />
      </Show>
      <td data-label="State" title={props.request.backend ?? undefined}>
        {stateLabels[props.request.state]}
        <Show when={props.request.prefill_tokens}>{(tokens) => <>: {count(tokens())} tokens</>}</Show>
        <Show when={props.request.priority !== "normal"}>
          <span class="faint">, {props.request.priority} priority</span>
        </Show>
        <Show when={props.request.place}>
          {(place) => (
            <span class="faint">
              , {count(place().position)} of {count(place().of)}
            </span>
          )}
        </Show>
        <Show when={props.request.heartbeats_ms}>
          {(ms) => (
            <>
              {" "}
              <span class="badge" data-tone="warn">
                Only heartbeats for {duration(ms())}
              </span>
            </>
          )}
        </Show>
      </td>
      <TextCell label="Model" rank="rank-1" text={props.request.model} />
      <TextCell
        label="Path"
        rank="rank-3"
        text={props.request.path}
        title={`${props.request.method} ${props.request.path}`}
      />
      <TextCell label="Client address" rank="rank-3" text={props.request.address} />
      <NumberCell
        label="Output"
        value={props.request.output_tokens}
        title={`${byteSize(props.request.received_bytes)} received`}
      />
      <td class="row-actions">
        <Button aria-label={`End the request of ${nameOf(props.request)}`} onClick={() => props.onEnd()}>
          End
        </Button>
      </td>
    </tr>
  );
}

/** Names the request. */
function EndDialog(props: { request: RunningRequest; onClose: () => void }): JSX.Element {
  const endRequest = useEndRequest();
  return (
    <ConfirmDialog
      title={`End the request of ${nameOf(props.request)}?`}
      action="End request"
      focusAfter={() => document.querySelector<HTMLElement>("#main")}
      onConfirm={() => endRequest.mutate(props.request)}
      onClose={() => props.onClose()}
    >
      <p>
        {props.request.method} {props.request.path}
        {props.request.model === null ? "" : `, model ${props.request.model}`}, from {props.request.address}.
      </p>
      <p>
        The client gets an error or a broken response, and may try again. What the backend has produced so far counts.
      </p>
    </ConfirmDialog>
  );
}
