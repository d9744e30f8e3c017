import { A } from "@solidjs/router";
import { createMemo, createSignal, For, type JSX, Match, Show, Switch } from "solid-js";
import { serverNow } from "../lib/server-clock.ts";
import { type User, useUsersQuery } from "../queries.ts";
import { type RunningRequest, useRunningQuery } from "../requests/queries.ts";
import { ToggleSwitch } from "../ui/controls.tsx";
import { CopyLine } from "../ui/copy-button.tsx";
import { Icon } from "../ui/icon.tsx";
import { NumberCell, NumberHeads } from "../ui/number-columns.tsx";
import { EmptyState, NotLoaded, Panel, type PanelQuery } from "../ui/panel.tsx";
import { RelativeTime, RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { type CostRow, rangeOf, useCostsQuery } from "../usage/report-queries.ts";
import { isNearLimit, type LimitedKey } from "./key-limits.ts";
import { useChangeUser, UserDialog } from "./subject-dialog.tsx";

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
  empty: JSX.Element;
}

const refreshMs = 15_000;
const tokensOf = (row: CostRow | undefined): number => (row === undefined ? 0 : row.input_tokens + row.output_tokens);

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
    <Panel title={props.title} hint="Most tokens today first" query={props.query}>
      <Switch>
        <Match when={props.members === undefined && props.query.isError}>
          <NotLoaded query={props.query} />
        </Match>
        <Match when={props.members?.length === 0}>{props.empty}</Match>
        <Match when={true}>
          <div class="table-scroll">
            <table class="cards-on-phone">
              <caption class="visually-hidden">{props.title}</caption>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Active</th>
                  <th scope="col">Last used</th>
                  <NumberHeads labels={["Running now", "Requests today", "Input", "Output"]} />
                  <Show when={props.onLimits}>
                    <th scope="col">
                      <span class="visually-hidden">Actions</span>
                    </th>
                  </Show>
                </tr>
              </thead>
              <tbody>
                <Show when={sorted()} fallback={<SkeletonRows columns={7} rows={4} />}>
                  {(list) => (
                    <For each={list()}>
                      {(member) => (
                        <MemberRow
                          {...props}
                          member={member}
                          running={runningOf(member.id)}
                          today={usageOf().get(member.id)}
                        />
                      )}
                    </For>
                  )}
                </Show>
              </tbody>
            </table>
          </div>
        </Match>
      </Switch>
    </Panel>
  );
}

function MemberRow<M extends Member>(
  props: MembersPanelProps<M> & { member: M; running: number; today: CostRow | undefined },
): JSX.Element {
  return (
    <tr classList={{ inactive: !(props.isUsable?.(props.member) ?? props.member.is_active) }}>
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
            <button
              class="icon-button"
              classList={{ near: isNearLimit(props.member) }}
              type="button"
              aria-label={`Limits of ${props.member.name}`}
              title={isNearLimit(props.member) ? "Limits: nearly used up" : "Limits"}
              onClick={() => onLimits()(props.member)}
            >
              <Icon name="limits" />
            </button>
          </td>
        )}
      </Show>
    </tr>
  );
}

/** The users behind a key, which waits for the first, or those of a team; nothing if the team has none. */
export function UsersPanel(props: { keyId: number } | { teamId: number }): JSX.Element {
  const of = () => ("keyId" in props ? { key: props.keyId } : { team: props.teamId });
  const users = useUsersQuery(of, refreshMs);
  const changeUser = useChangeUser();
  const [limiting, setLimiting] = createSignal<User>();
  return (
    <Show when={"keyId" in props || (users.data?.users.length ?? 0) > 0}>
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
        empty={
          <EmptyState title="No user yet">
            <Show when={"keyId" in props && props.keyId}>{(id) => <FirstUser keyId={id()} />}</Show>
          </EmptyState>
        }
      />
      <Show when={users.data?.next_cursor}>
        <p class="hint">Only the first {users.data?.users.length} are shown; the API has all.</p>
      </Show>
      <Show when={limiting()} keyed>
        {(user) => <UserDialog user={user} onClose={() => setLimiting(undefined)} />}
      </Show>
    </Show>
  );
}

/** Waits until the front end names somebody. */
export function FirstUser(props: { keyId: number }): JSX.Element {
  const users = useUsersQuery(() => ({ key: props.keyId }), 2000);
  const latest = () =>
    users.data?.users
      .flatMap(({ name, last_seen_at: at }) => (at === null ? [] : [{ name, at: Date.parse(at) }]))
      .toSorted((a, b) => b.at - a.at)[0];
  return (
    <p role="status">
      <Show when={latest()} fallback="Waiting for the first request that names its user…">
        {(user) => (
          <>
            Last seen: <bdi>{user().name}</bdi>,{" "}
            <span aria-live="off">
              <RelativeTime at={Math.min(user().at, serverNow())} />
            </span>
          </>
        )}
      </Show>
    </p>
  );
}

/** What makes Open WebUI say whose a request is, signed. */
export const OpenWebUiLines = (props: { secret: string }): JSX.Element => (
  <>
    <p>Start Open WebUI with these two. Tollgate does not show the secret again.</p>
    <CopyLine text="ENABLE_FORWARD_USER_INFO_HEADERS=true" what="the first line" />
    <CopyLine text={`FORWARD_USER_INFO_HEADER_JWT_SECRET=${props.secret}`} what="the second line" />
  </>
);
