import { A } from "@solidjs/router";
import { createMemo, createSignal, type JSX, Show } from "solid-js";
import { count, duration, plural } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { useKeysQuery } from "../queries.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Button } from "../ui/controls.tsx";
import { type RunningRequest, type Stopped, useStopRequests } from "./queries.ts";
import { groupings, groupRunning, type RunningGroup, type RunningGrouping } from "./request-groups.ts";
import { actions, NumberCell, numbers, Table } from "../ui/table.tsx";

/** Whose requests run, most first, and what stops them. */
export function RunningGroups(props: { requests: readonly RunningRequest[]; by: RunningGrouping }): JSX.Element {
  const groups = createMemo(() => groupRunning(props.requests, props.by));
  // Rows are keyed by id, so that a refresh does not move the focus.
  const ids = (): (number | null)[] => groups().map(({ id }) => id);
  const find = (id: number | null): RunningGroup | undefined => groups().find((group) => group.id === id);
  const [stopping, setStopping] = createSignal<RunningGroup>();
  // Known before it is asked: what a button says must not change under the pointer.
  const keys = useKeysQuery(() => props.by === "team");
  return (
    <>
      <Table
        caption="Running requests by whose they are, most first"
        class="running"
        heads={[groupings[props.by].label, ...numbers("Requests", "Waiting", "Oldest", "Output"), actions]}
        rows={ids()}
      >
        {(id) => (
          <Show when={find(id)}>
            {(group) => <GroupRow group={group()} by={props.by} onStop={() => setStopping(group())} />}
          </Show>
        )}
      </Table>
      <Show when={(props.by !== "team" || keys.data !== undefined) && stopping()} keyed>
        {(asked) => (
          <StopDialog
            keys={keys.data ?? []}
            group={{ ...asked, requests: find(asked.id)?.requests ?? [] }}
            by={props.by}
            onClose={() => setStopping(undefined)}
          />
        )}
      </Show>
    </>
  );
}

function GroupRow(props: { group: RunningGroup; by: RunningGrouping; onStop: () => void }): JSX.Element {
  const sum = (valueOf: (request: RunningRequest) => number): number =>
    props.group.requests.reduce((total, request) => total + valueOf(request), 0);
  const oldest = (): number => Math.min(...props.group.requests.map(({ started_at: at }) => Date.parse(at)));
  return (
    <tr>
      <th scope="row" class="cut" title={props.group.name}>
        <Show when={props.group.id !== null} fallback={<span class="faint">{props.group.name}</span>}>
          <A href={props.group.href}>
            <bdi>{props.group.name}</bdi>
          </A>
        </Show>
      </th>
      <NumberCell label="Requests" value={props.group.requests.length} />
      <NumberCell label="Waiting" value={sum(({ state }) => (state === "queued" || state === "prefill" ? 1 : 0))} />
      <NumberCell label="Oldest" value={duration(Math.max(0, now() - oldest()))} />
      <NumberCell label="Output" value={sum(({ output_tokens: tokens }) => tokens ?? 0)} />
      <td class="row-actions">
        <Button aria-label={`Stop the requests of ${props.group.name}`} onClick={() => props.onStop()}>
          Stop…
        </Button>
      </td>
    </tr>
  );
}

/** Ends what runs now, or also what would come. */
function StopDialog(props: {
  group: RunningGroup;
  by: RunningGrouping;
  keys: NonNullable<ReturnType<typeof useKeysQuery>["data"]>;
  onClose: () => void;
}): JSX.Element {
  const stop = useStopRequests();
  const offs = (): Stopped["offs"] => {
    const { id } = props.group;
    if (id === null) return [];
    if (props.by !== "team") return [{ kind: props.by, id }];
    const members = props.keys.filter((key) => key.team_id === id && key.is_active);
    return members.map((key) => ({ kind: "key", id: key.id }));
  };
  const run = (switched: Stopped["offs"]): void => stop.mutate({ requests: props.group.requests, offs: switched });
  const endsAll = (): string => `End all ${count(props.group.requests.length)}`;
  const Others = (): JSX.Element => (
    <>
      <Show when={props.group.id !== null}>
        <A class="button" href={props.group.href}>
          Limits
        </A>
      </Show>
      <Show when={offs().length > 0}>
        <Button
          tone="danger"
          onClick={() => {
            run([]);
            props.onClose();
          }}
        >
          {endsAll()}
        </Button>
      </Show>
    </>
  );
  return (
    <ConfirmDialog
      title={`Stop the requests of ${props.group.id === null ? "clients without one" : `“${props.group.name}”`}?`}
      action={offs().length > 0 ? "Switch off and end" : endsAll()}
      onConfirm={() => run(offs())}
      others={<Others />}
      focusAfter={() => document.querySelector<HTMLElement>("#main")}
      onClose={() => props.onClose()}
    >
      <p>
        {plural(props.group.requests.length, "request runs", "requests run")} now. Their clients get an error or a
        broken response, and may try again. What the backend has produced so far counts.
      </p>
      <Show when={offs().length > 0}>
        <p>
          Switched off,{" "}
          {props.by === "team" ? plural(offs().length, "key of it gets", "keys of it get") : `the ${props.by} gets`} no
          more either, until somebody switches on again.
        </p>
      </Show>
    </ConfirmDialog>
  );
}
