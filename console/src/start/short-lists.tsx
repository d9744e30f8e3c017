import { A } from "@solidjs/router";
import { Index, type JSX, Show } from "solid-js";
import { count, duration, shareOf } from "../lib/format.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import type { States } from "../queries.ts";
import { Panel } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { type LastChange, type Overview, useLastChangesQuery } from "./queries.ts";

const maxRows = 5;

interface Row {
  href: string;
  name: string;
  value: JSX.Element;
}

/** What changed, who is near a limit, and what is hot: all at once, so that none moves another when it comes. */
export function ShortLists(props: { overview: Overview | undefined; states: States | undefined }): JSX.Element {
  const changes = useLastChangesQuery();
  const changed = (): Row[] =>
    [...(props.states ? turnsOf(props.states) : []), ...(changes.data ?? []).map(changeOf)]
      .filter(({ at }) => at > now() - dayMs)
      .toSorted((one, other) => other.at - one.at);
  return (
    <Show when={props.states && !changes.isPending && props.overview}>
      {(overview) => (
        <div class="columns short">
          <ShortList title="What changed" hint="Last 24 hours" rows={changed()} />
          <ShortList title="Near a limit" hint="From 80% on" rows={overview().near_limit.map(nearOf)} />
          <ShortList title="Hot" hint="85 °C, or full for 5 minutes" rows={hotOf(overview())} />
        </div>
      )}
    </Show>
  );
}

const ShortList = (props: { title: string; hint: string; rows: readonly Row[] }): JSX.Element => (
  <Show when={props.rows.length > 0}>
    <Panel title={props.title} hint={props.hint}>
      <ul class="list">
        {/* Each refresh makes new rows: theirs would take the focus along. */}
        <Index each={props.rows.slice(0, maxRows)}>
          {(row) => (
            <li>
              <A href={row().href} class="name" title={row().name}>
                <bdi>{row().name}</bdi>
              </A>
              <span class="value">{row().value}</span>
            </li>
          )}
        </Index>
      </ul>
    </Panel>
  </Show>
);

type TimedRow = Row & { at: number };

const timed = (at: number, href: string, name: string): TimedRow => ({
  at,
  href,
  name,
  value: <RelativeTime at={at} />,
});

/** When states came, and went. */
const turnsOf = ({ states, past }: States): TimedRow[] => [
  ...states.map(({ what, since }) => timed(Date.parse(since), "/#states", what)),
  ...past.map(({ what, since, until }) => {
    const [from, to] = [Date.parse(since), Date.parse(until)];
    return timed(to, "/#past", `Over after ${duration(to - from)}: ${what}`);
  }),
];

const changeOf = ({ at, actor, action, target, count: times }: LastChange): TimedRow =>
  timed(
    Date.parse(at),
    `/settings/account/changes?${new URLSearchParams({ target }).toString()}`,
    `${actor}: ${action} ${target}${times > 1 ? ` × ${count(times)}` : ""}`,
  );

const nearOf = ({ kind, id, name, used, limit, unit }: Overview["near_limit"][number]): Row => ({
  href: kind === "team" ? `/keys/teams/${id}` : `/keys/${id}`,
  name: kind === "team" ? `Team ${name}` : name,
  value: <span title={`${count(used)} of ${count(limit)}`}>{`${shareOf(used, limit)} of ${unit}`}</span>,
});

const hotOf = ({ hot_gpus: gpus, full_backends: backends }: Overview): Row[] => [
  ...backends.map(({ name, places, since }) => ({
    href: "/backends",
    name,
    value: `${count(places)} of ${count(places)} places for ${duration(now() - Date.parse(since))}`,
  })),
  ...gpus.map(({ gpu_id: id, name, temp_c: celsius }) => ({
    href: `/gpus/${id}`,
    name: `GPU ${id}, ${name}`,
    value: `${celsius} °C`,
  })),
];
