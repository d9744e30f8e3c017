import { type JSX, Show } from "solid-js";
import { compact, count, milliseconds } from "../lib/format.ts";
import { serverNow } from "../lib/server-clock.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { zoneName } from "../lib/time-zone.ts";
import { useHasTeams, useHasUsers } from "../queries.ts";
import type { LoggedRequest } from "./queries.ts";
import { resultLabel, resultTone } from "./request-format.ts";
import { clockSecondsLabel } from "./request-time.ts";
import { NumberCell, Table, TextCell } from "../ui/table.tsx";

interface RequestTableProps {
  /** Undefined while they load. */
  rows: readonly LoggedRequest[] | undefined;
  onOpen: (request: LoggedRequest) => void;
}

export function RequestTable(props: RequestTableProps): JSX.Element {
  const hasTeams = useHasTeams();
  const hasUsers = useHasUsers();
  return (
    <Table
      caption="Requests, newest first"
      class="requests"
      heads={[
        `Ended (${zoneName(serverNow())})`,
        "Result",
        "Key",
        hasTeams() && { label: "Team", rank: "rank-2" },
        hasUsers() && { label: "User", rank: "rank-2" },
        "Model",
        { label: "Path", rank: "rank-3" },
        { label: "Input", number: true, rank: "rank-1" },
        { label: "Output", number: true },
        { label: "First byte", number: true, rank: "rank-2" },
        { label: "Duration", number: true },
      ]}
      rows={props.rows}
      skeleton={10}
    >
      {(request) => <RequestRow request={request} hasTeam={hasTeams()} hasUser={hasUsers()} onOpen={props.onOpen} />}
    </Table>
  );
}

/** A click anywhere opens the request; the button is for the keyboard and screen readers. */
function RequestRow(props: {
  request: LoggedRequest;
  hasTeam: boolean;
  hasUser: boolean;
  onOpen: (request: LoggedRequest) => void;
}): JSX.Element {
  const at = (): number => Date.parse(props.request.ended_at);
  return (
    <tr data-row onClick={() => props.onOpen(props.request)}>
      <th scope="row">
        <button class="row-link" type="button" data-request={props.request.id} title={dateTimeLabel(at())}>
          <time datetime={props.request.ended_at}>{clockSecondsLabel(at())}</time>
          <span class="visually-hidden">: show the request</span>
        </button>
      </th>
      <td data-label="Result">
        <ResultBadge request={props.request} />
      </td>
      <TextCell label="Key" text={props.request.key_name} none="None" />
      <Show when={props.hasTeam}>
        <TextCell label="Team" rank="rank-2" text={props.request.team_name} />
      </Show>
      <Show when={props.hasUser}>
        <TextCell label="User" rank="rank-2" text={props.request.user_name} />
      </Show>
      <TextCell label="Model" text={props.request.model_sent} />
      <TextCell
        label="Path"
        rank="rank-3"
        text={props.request.path}
        title={`${props.request.method} ${props.request.path}`}
      />
      <TokenCell label="Input" value={props.request.input_tokens} />
      <Show
        when={props.request.uncounted}
        fallback={
          <TokenCell
            label="Output"
            value={props.request.output_tokens}
            estimated={props.request.estimated_tokens ?? 0}
          />
        }
      >
        <td class="number faint" data-label="Output" title="The stream was cut before the backend reported its output">
          cut, not counted
        </td>
      </Show>
      <NumberCell
        label="First byte"
        rank="rank-2"
        value={props.request.first_byte_ms === null ? null : milliseconds(props.request.first_byte_ms)}
      />
      <NumberCell label="Duration" value={milliseconds(props.request.duration_ms)} />
    </tr>
  );
}

/** @param props.estimated charged beside the value */
function TokenCell(props: { label: string; value: number | null; estimated?: number }): JSX.Element {
  const estimated = (): number => props.estimated ?? 0;
  const title = (): string | undefined => {
    if (estimated() > 0) return `${count(estimated())} charged by an estimate, because the backend reported none`;
    return props.value === null ? undefined : count(props.value);
  };
  return (
    <td class="number" classList={{ "rank-1": props.label === "Input" }} data-label={props.label} title={title()}>
      <Show when={estimated() > 0} fallback={props.value === null ? "–" : compact(props.value)}>
        ≈ {compact(estimated())}
      </Show>
    </td>
  );
}

/** The status, and what went wrong. */
export const ResultBadge = (props: { request: LoggedRequest }): JSX.Element => (
  <span class="badge" data-tone={resultTone(props.request)} title={resultLabel(props.request)}>
    {resultLabel(props.request)}
  </span>
);
