import { A } from "@solidjs/router";
import { createSignal, For, type JSX, Match, Show, Switch } from "solid-js";
import { plural, shareOf } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { type CacheQuery, type CacheShares, useCacheQuery } from "../queries.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { NumberHeads } from "../ui/table-head.tsx";
import { NumberCell } from "./usage-cells.tsx";

const groupOptions = [
  { value: "client", label: "Client" },
  { value: "key", label: "Key" },
  { value: "model", label: "Model" },
  { value: "conversation", label: "Conversation" },
] as const;
type Group = CacheQuery["by"];

const hourOptions = ["1", "24"].map((value) => ({ value, label: `${value} h` }));

/** What share of the input came from caches. */
export function CachePanel(): JSX.Element {
  const [by, setBy] = createSignal<Group>("client");
  const [hours, setHours] = createSignal("1");
  const cache = useCacheQuery(() => ({ by: by(), hours: Number(hours()), limit: 20 }));
  return (
    <Panel
      title="Input from caches"
      query={cache}
      hint="By the request log, most that came from no cache first"
      actions={
        <>
          <SegmentedControl label="Group caches by" options={groupOptions} value={by()} onChange={setBy} />
          <SegmentedControl label="Hours of caches" options={hourOptions} value={hours()} onChange={setHours} />
        </>
      }
    >
      <Switch fallback={<SharesTable cache={cache.data} isStale={cache.isPlaceholderData} />}>
        <Match when={cache.data === undefined && cache.isError}>
          <NotLoaded query={cache} />
        </Match>
        <Match when={cache.data?.rows.length === 0}>
          <EmptyState title="No input in these hours">
            <Show when={by() === "conversation"}>
              <p>Conversations are told apart where there are several backends.</p>
            </Show>
          </EmptyState>
        </Match>
      </Switch>
      <p class="footnote">
        Only what backends report counts as cached.{" "}
        <Show when={cache.data?.since}>{(since) => <>Added up since {dateTimeLabel(Date.parse(since()))}. </>}</Show>
        <HandbookLink to="models-and-backends#why-a-cache-was-not-used">Why a cache was not used</HandbookLink>
      </p>
    </Panel>
  );
}

type Row = CacheShares["rows"][number];

function SharesTable(props: { cache: CacheShares | undefined; isStale: boolean }): JSX.Element {
  const by = (): string => props.cache?.by ?? "client";
  const heading = (): string => groupOptions.find(({ value }) => value === by())?.label ?? "";
  return (
    <div class="table-scroll">
      <table class="cards-on-phone" classList={{ stale: props.isStale }} aria-busy={props.isStale}>
        <caption class="visually-hidden">Input from caches</caption>
        <thead>
          <tr>
            <th scope="col">{heading()}</th>
            <NumberHeads labels={["Requests", "Input", "Cached", "Share", "Not from cache, known why"]} />
          </tr>
        </thead>
        <tbody>
          <Show when={props.cache} fallback={<SkeletonRows columns={6} />}>
            <For each={props.cache?.rows}>{(row) => <ShareRow row={row} by={by()} />}</For>
          </Show>
        </tbody>
      </table>
    </div>
  );
}

const ShareRow = (props: { row: Row; by: string }): JSX.Element => (
  <tr>
    <th scope="row" class="cut">
      <A href={`/requests?${new URLSearchParams({ [props.by]: linkOf(props.row) }).toString()}`}>
        <bdi>{props.row.name ?? nameOf(props.row, props.by)}</bdi>
      </A>
    </th>
    <NumberCell label="Requests" value={props.row.request_count} />
    <NumberCell label="Input" value={props.row.input_tokens} />
    <NumberCell label="Cached" value={props.row.cached_tokens} />
    <td class="number" data-label="Share">
      {shareOf(props.row.cached_tokens, props.row.input_tokens)}
    </td>
    <td class="number" data-label="Not from cache, known why">
      {props.row.lost_count === 0 ? "None" : plural(props.row.lost_count, "request")}
    </td>
  </tr>
);

const linkOf = ({ id, name }: Row): string => String(id ?? name ?? "");

const nameOf = ({ id }: Row, by: string): string => (by === "key" ? `Deleted key ${id}` : `…${String(id).slice(-6)}`);
