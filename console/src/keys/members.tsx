import { A } from "@solidjs/router";
import { createMemo, createSignal, type JSX, Show } from "solid-js";
import { downloadCsv } from "../lib/csv.ts";
import { type User, useTeamsQuery, useUsersQuery } from "../queries.ts";
import { type RunningRequest, useRunningQuery } from "../requests/queries.ts";
import { Button, CsvButton, IconButton, ToggleSwitch } from "../ui/controls.tsx";
import { EmptyState, NotLoaded, Panel, type PanelQuery } from "../ui/panel.tsx";
import { RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { actions, NumberCell, numbers, Table } from "../ui/table.tsx";
import { type CostRow, rangeOf, useCostsQuery } from "../usage/report-queries.ts";
import { BulkDialog } from "./bulk-dialog.tsx";
import { ImportUsersDialog } from "./import-dialog.tsx";
import { Bulk, SelectAll, SelectCell, type Selected, useSelected } from "./bulk-bar.tsx";
import { userCsv } from "./key-list.ts";
import { isNearLimit, type LimitedKey } from "./key-limits.ts";
import { FirstUser, useChangeUser, UserDialog } from "./subject-dialog.tsx";

/** A key of a team, or a user of a key or a team. */
interface Member extends LimitedKey {
  id: number;
  name: string;
  is_active: boolean;
}

interface MembersPanelProps<M extends Member> {
  title: string;
  by: "key" | "user";
  query: PanelQuery;
  /** Undefined while they load. */
  members: readonly M[] | undefined;
  /** Whose they are. */
  keyId?: number;
  teamId?: number;
  lastUsedAt: (member: M) => string | null;
  isUsable?: (member: M) => boolean;
  /** The page of a member. */
  href: (member: M) => string;
  onSwitch: (member: M, isActive: boolean) => void;
  onLimits?: (member: M) => void;
  /** Unset: none can be selected. */
  selected?: Selected<M>;
  actions?: JSX.Element;
  empty: JSX.Element;
}

const refreshMs = 15_000;
const tokensOf = (row: CostRow | undefined): number => (row === undefined ? 0 : row.input_tokens + row.output_tokens);

/** The page of a key or a team: its content, unless it could not be loaded, or is not there. */
export const PageOfOne = (props: {
  noun: "key" | "team";
  query: PanelQuery;
  isThere: boolean;
  /** The page of all. */
  all: { href: string; title: string };
  children: JSX.Element;
}): JSX.Element => (
  <Show when={props.query.data === undefined ? props.query.isError : !props.isThere} fallback={props.children}>
    <section class="panel" aria-label={props.noun}>
      <Show when={props.query.data} fallback={<NotLoaded query={props.query} />}>
        <EmptyState title={`This ${props.noun} does not exist`}>
          <p>It was deleted, or the address is wrong. Its usage stays in the history.</p>
          <A class="button" href={props.all.href}>
            {props.all.title}
          </A>
        </EmptyState>
      </Show>
    </section>
  </Show>
);

/** Most tokens today first: who floods is at the top, with a switch. */
export function MembersPanel<M extends Member>(props: MembersPanelProps<M>): JSX.Element {
  const running = useRunningQuery();
  const today = useCostsQuery(
    () => ({
      range: rangeOf("today"),
      by: props.by,
      filter: {
        ...(props.teamId !== undefined && { team: String(props.teamId) }),
        ...(props.keyId !== undefined && { key: String(props.keyId) }),
      },
    }),
    { everyMs: refreshMs },
  );
  const usageOf = createMemo(() => new Map(today.data?.rows.map((row) => [row[`${props.by}_id`], row])));
  const sorted = createMemo(() => {
    const usage = usageOf();
    return props.members?.toSorted((a, b) => tokensOf(usage.get(b.id)) - tokensOf(usage.get(a.id)));
  });
  const isOf = (request: RunningRequest, id: number): boolean => request[`${props.by}_id`] === id;
  const runningOf = (id: number): number => running.data?.requests.filter((one) => isOf(one, id)).length ?? 0;
  return (
    <Panel title={props.title} hint="Most tokens today first" query={props.query} actions={props.actions}>
      <Table
        caption={props.title}
        firstHead={
          <Show when={props.selected}>
            {(selected) => <SelectAll noun={props.by} rows={props.members} selected={selected()} />}
          </Show>
        }
        heads={[
          "Name",
          "Active",
          "Last used",
          ...numbers("Running now", "Requests today", "Input", "Output"),
          props.onLimits !== undefined && actions,
        ]}
        query={props.query}
        rows={sorted()}
        empty={props.empty}
      >
        {(member) => (
          <MemberRow {...props} member={member} running={runningOf(member.id)} today={usageOf().get(member.id)} />
        )}
      </Table>
    </Panel>
  );
}

function MemberRow<M extends Member>(
  props: MembersPanelProps<M> & { member: M; running: number; today: CostRow | undefined },
): JSX.Element {
  return (
    <tr
      classList={{
        inactive: !(props.isUsable?.(props.member) ?? props.member.is_active),
        selected: props.selected?.has(props.member) ?? false,
      }}
    >
      <Show when={props.selected}>{(selected) => <SelectCell row={props.member} selected={selected()} />}</Show>
      <th scope="row" class="cut" title={props.member.name}>
        <A href={props.href(props.member)}>
          <bdi>{props.member.name}</bdi>
        </A>
      </th>
      <td data-label="Active">
        <ToggleSwitch
          label={`${props.member.name} is active`}
          on={props.member.is_active}
          onChange={(isActive) => props.onSwitch(props.member, isActive)}
        />
      </td>
      <td data-label="Last used">
        <RelativeTimeOrNever at={props.lastUsedAt(props.member)} />
      </td>
      <NumberCell label="Running now" value={props.running} />
      <NumberCell label="Requests today" value={props.today?.request_count ?? 0} />
      <NumberCell label="Input today" value={props.today?.input_tokens ?? 0} />
      <NumberCell label="Output today" value={props.today?.output_tokens ?? 0} />
      <Show when={props.onLimits}>
        {(onLimits) => (
          <td class="row-actions">
            <IconButton
              icon="limits"
              label={`Limits of ${props.member.name}`}
              tone={isNearLimit(props.member) && "near"}
              title={isNearLimit(props.member) ? "Limits: nearly used up" : "Limits"}
              onClick={() => onLimits()(props.member)}
            />
          </td>
        )}
      </Show>
    </tr>
  );
}

/** The users behind a key, which waits for the first, or those of a team; nothing if the team has none. Those that several keys share are not imported for one. */
export function UsersPanel(props: { keyId: number; isShared: boolean } | { teamId: number }): JSX.Element {
  const of = () => ("keyId" in props ? { key: props.keyId } : { team: props.teamId });
  const users = useUsersQuery(of, refreshMs);
  const teams = useTeamsQuery();
  const changeUser = useChangeUser();
  const [limiting, setLimiting] = createSignal<User>();
  const [importsTo, setImportsTo] = createSignal<number>();
  const all = (): readonly User[] => users.data?.users ?? [];
  const selected = useSelected(all);
  const csv = (list: readonly User[]): string => userCsv(list, teams.data ?? []);
  const Actions = (): JSX.Element => (
    <>
      <Show when={"keyId" in props && !props.isShared && props.keyId}>
        {(id) => <Button onClick={() => setImportsTo(id())}>Import</Button>}
      </Show>
      <CsvButton disabled={all().length === 0} fileName="users.csv" text={() => csv(all())} />
    </>
  );
  return (
    <Show when={"keyId" in props || all().length > 0}>
      <div class="keys-with-selection">
        <MembersPanel
          {...props}
          title="Users"
          by="user"
          query={users}
          members={users.data?.users}
          lastUsedAt={(user) => user.last_seen_at}
          href={(user) => `/requests?user=${user.id}`}
          onSwitch={(user, isActive) => changeUser.mutate({ user, fields: { is_active: isActive } })}
          onLimits={setLimiting}
          selected={selected}
          actions={<Actions />}
          empty={
            <EmptyState title="No user yet">
              <Show when={"keyId" in props && props.keyId}>{(id) => <FirstUser keyId={id()} />}</Show>
            </EmptyState>
          }
        />
        <Bulk
          noun="user"
          dialog={BulkDialog}
          selected={selected}
          rows={all()}
          onExport={(list) => downloadCsv("tollgate-selected-users.csv", csv(list))}
        />
      </div>
      <Show when={users.data?.next_cursor}>
        <p class="hint">Only the first {all().length} are shown; the API has all.</p>
      </Show>
      <Show when={limiting()} keyed>
        {(user) => <UserDialog user={user} onClose={() => setLimiting(undefined)} />}
      </Show>
      <Show when={importsTo()} keyed>
        {(id) => <ImportUsersDialog keyId={id} users={all()} onClose={() => setImportsTo(undefined)} />}
      </Show>
    </Show>
  );
}
