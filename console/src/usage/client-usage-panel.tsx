import { A } from "@solidjs/router";
import { createMemo, For, type JSX, Match, Show, Switch } from "solid-js";
import { plural, shareOf } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { type ClientUsage, useClientUsageQuery } from "../queries.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { classesSentence, type ClientGroup, type ClientLine, groupClients } from "./client-usage.ts";
import { keyIdOf } from "./usage-buckets.ts";
import { NumberCell } from "./usage-cells.tsx";
import "../styles/lazy-pages.css";

const groupOptions = [
  { value: "program", label: "Program" },
  { value: "client", label: "Version" },
  { value: "class", label: "Class" },
] as const satisfies readonly { value: ClientGroup; label: string }[];

const hourOptions = [
  { value: "24", label: "24 h" },
  { value: "168", label: "7 d" },
] as const;

/** Which client programs asked, and what for, by the request log. Of one key with a key in the URL. */
export function ClientUsagePanel(): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"clients" | "hours" | "key">();
  const group = (): ClientGroup => groupOptions.find(({ value }) => value === parameters.clients)?.value ?? "program";
  const hours = (): (typeof hourOptions)[number]["value"] =>
    hourOptions.find(({ value }) => value === parameters.hours)?.value ?? "24";
  const keyId = (): number | undefined => keyIdOf(parameters.key);
  const usage = useClientUsageQuery(() => Number(hours()), keyId);
  const lines = createMemo((): ClientLine[] | undefined => usage.data && groupClients(usage.data.rows, group()));
  return (
    <Panel
      title="Clients"
      query={usage}
      hint={usage.data && classesSentence(usage.data.rows)}
      actions={
        <>
          <SegmentedControl
            label="Group clients by"
            options={groupOptions}
            value={group()}
            onChange={(by) => setParameters({ clients: by === "program" ? undefined : by }, { replace: true })}
          />
          <SegmentedControl
            label="Hours of clients"
            options={hourOptions}
            value={hours()}
            onChange={(span) => setParameters({ hours: span === "24" ? undefined : span }, { replace: true })}
          />
        </>
      }
    >
      <Switch
        fallback={<ClientTable lines={lines()} group={group()} usage={usage.data} isStale={usage.isPlaceholderData} />}
      >
        <Match when={usage.data === undefined && usage.isError}>
          <NotLoaded query={usage} />
        </Match>
        <Match when={lines()?.length === 0}>
          <EmptyState title="No requests in these hours" />
        </Match>
      </Switch>
      <p class="footnote">
        By the request log. Input includes what came from the backend’s cache. Claude Code says what a request is for (
        <code>main</code>, <code>subagent</code>, <code>compaction</code>) with the settings of Help.{" "}
        <Show when={usage.data?.complete === false && usage.data}>
          {(data) => <>Older requests than of {dateTimeLabel(Date.parse(data().since))} are left out.</>}
        </Show>
      </p>
    </Panel>
  );
}

/** @param props.lines undefined while they load */
function ClientTable(props: {
  lines: ClientLine[] | undefined;
  group: ClientGroup;
  usage: ClientUsage | undefined;
  isStale: boolean;
}): JSX.Element {
  const scroll = createInfiniteScroll(() => props.lines ?? [], { choice: () => props.group });
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone clients" classList={{ stale: props.isStale }} aria-busy={props.isStale}>
          <caption class="visually-hidden">Usage by client</caption>
          <thead>
            <tr>
              <th scope="col">{props.group === "class" ? "Class" : "Client"}</th>
              <For each={["Requests", "Input", "Share of input", "From cache", "Output"]}>
                {(label) => (
                  <th scope="col" class="number">
                    {label}
                  </th>
                )}
              </For>
            </tr>
          </thead>
          <tbody>
            <Show when={props.lines} fallback={<SkeletonRows columns={6} />}>
              <For each={scroll.shown()}>
                {(line) => <ClientRow line={line} group={props.group} whole={props.usage?.prompt_tokens ?? 0} />}
              </For>
            </Show>
          </tbody>
          <Show when={props.usage}>
            {(usage) => (
              <tfoot>
                <tr>
                  <th scope="row">{plural(props.lines?.length ?? 0, "row")}</th>
                  <NumberCell label="Requests" value={usage().request_count} />
                  <NumberCell label="Input" value={usage().prompt_tokens} />
                  <td colspan="3" />
                </tr>
              </tfoot>
            )}
          </Show>
        </table>
      </div>
      <MoreRows scroll={scroll} />
    </>
  );
}

function ClientRow(props: { line: ClientLine; group: ClientGroup; whole: number }): JSX.Element {
  const filter = (): string => (props.group === "class" ? "class" : "client");
  const unnamed = (): string => (props.group === "class" ? "Not said" : "No User-Agent");
  return (
    <tr>
      <th scope="row" class="cut" title={props.line.name ?? undefined}>
        <Show when={props.line.name} fallback={<span class="faint">{unnamed()}</span>}>
          {(name) => (
            <A href={`/requests?${new URLSearchParams({ [filter()]: name() }).toString()}`}>
              <bdi>{name()}</bdi>
            </A>
          )}
        </Show>
      </th>
      <NumberCell label="Requests" value={props.line.request_count} />
      <NumberCell label="Input" value={props.line.prompt_tokens} />
      <td class="number" data-label="Share of input">
        {shareOf(props.line.prompt_tokens, props.whole)}
      </td>
      <td class="number" data-label="From cache">
        {shareOf(props.line.from_cache_tokens, props.line.prompt_tokens)}
      </td>
      <NumberCell label="Output" value={props.line.output_tokens} />
    </tr>
  );
}
