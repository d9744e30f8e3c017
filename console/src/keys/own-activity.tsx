import { useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { For, type JSX, Show } from "solid-js";
import { type api, requestWithKey } from "../client.ts";
import { counterLabels, counters } from "../lib/counters.ts";
import { compact, count, milliseconds, plural, shareOf } from "../lib/format.ts";
import { costLabel, costTitle } from "../lib/money.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { changeLabel, resultLabel, resultTone } from "../requests/request-format.ts";
import { CopyButton } from "../ui/copy-button.tsx";
import { Figure } from "../ui/figure.tsx";
import { EmptyState, Panel } from "../ui/panel.tsx";
import { NumberCell, numbers, Table, TextCell } from "../ui/table.tsx";

/** A key as it was entered. It stays in memory: queries are named by the attempt. */
export interface EnteredKey {
  key: string;
  /** Another one for each entry, so that no data of the key before is shown. */
  attempt: number;
}

/** What `GET /api/own-key/activity` tells the holder of a key. */
export type OwnActivity = NonNullable<Awaited<ReturnType<(typeof api)["own-key"]["activity"]["get"]>>["data"]>;

/** @param entered undefined: nothing is requested */
export const useOwnActivityQuery = (entered: () => EnteredKey | undefined): UseQueryResult<OwnActivity> =>
  useQuery(() => ({
    enabled: entered() !== undefined,
    queryKey: ["own-activity", entered()?.attempt],
    queryFn: () => requestWithKey<OwnActivity>("/api/own-key/activity", entered()?.key ?? ""),
    refetchInterval: ({ state }) => (state.error === null ? 30_000 : false),
    gcTime: 0,
    staleTime: 0,
  }));

export const MonthFigures = (props: { month: OwnActivity["this_month"] }): JSX.Element => (
  <>
    <Figure
      label="From the cache this month"
      value={shareOf(props.month.from_cache_tokens, props.month.prompt_tokens)}
      exact={`${count(props.month.from_cache_tokens)} of ${count(props.month.prompt_tokens)} input tokens`}
      note={`${compact(props.month.from_cache_tokens)} input tokens`}
    />
    <Show when={props.month.currency}>
      {(currency) => (
        <Figure
          label="Cost this month"
          value={costLabel(props.month, currency())}
          exact={costTitle(props.month)}
          note="By the operator’s prices"
        />
      )}
    </Show>
  </>
);

/** The last requests, by whose ids the operator finds them. */
export const OwnActivityPanels = (props: { activity: OwnActivity }): JSX.Element => (
  <Panel title="Last requests" hint="With its id, the operator finds a request">
    <Show when={props.activity.client_rules.length > 0}>
      <p class="panel-body">
        In the last 24 hours, what the client sent was adapted to the backend:{" "}
        {props.activity.client_rules
          .map(({ rule, request_count: requests }) => `${changeLabel(rule)} (${plural(requests, "request")})`)
          .join(", ")}
        .
      </p>
    </Show>
    <Table
      caption="Last requests, newest first"
      heads={[
        "Ended",
        "Request id",
        "Result",
        "Model",
        "Client",
        ...numbers(...Object.values(counterLabels), "Duration"),
      ]}
      rows={props.activity.requests}
      empty={<EmptyState title="This key has no requests in the log" />}
    >
      {(request) => <OwnRequestRow request={request} />}
    </Table>
  </Panel>
);

const OwnRequestRow = (props: { request: OwnActivity["requests"][number] }): JSX.Element => (
  <tr>
    <th scope="row">
      <time datetime={props.request.ended_at}>{dateTimeLabel(Date.parse(props.request.ended_at))}</time>
    </th>
    <td data-label="Request id">
      <span class="own-request-id">
        <code>{props.request.request_id}</code>
        <CopyButton text={props.request.request_id} what="the request id" />
      </span>
    </td>
    <td data-label="Result">
      <span class="badge" data-tone={resultTone(props.request)}>
        {resultLabel({ ...props.request, cause: null })}
      </span>
    </td>
    <TextCell label="Model" text={props.request.model} />
    <TextCell
      label="Client"
      text={[props.request.client, props.request.class].filter((text) => text !== null).join(" · ")}
    />
    <For each={counters}>
      {(counter) => <NumberCell label={counterLabels[counter]} value={props.request[counter]} />}
    </For>
    <NumberCell label="Duration" value={milliseconds(props.request.duration_ms)} />
  </tr>
);

const sumLabels = {
  request_count: "Requests today",
  input_tokens: "Input tokens today",
  output_tokens: "Output tokens today",
  estimated_tokens: "Charged by an estimate today",
} as const;
type SumName = keyof typeof sumLabels;

/** Sums of today, with this month's; what is charged by an estimate, where there is any. */
export const SumFigures = (props: { of: Record<"today" | "this_month", Record<SumName, number>> }): JSX.Element => (
  <For each={Object.entries(sumLabels) as [SumName, string][]}>
    {([name, label]) => (
      <Show when={name !== "estimated_tokens" || props.of.this_month[name] > 0}>
        <Figure
          label={label}
          value={compact(props.of.today[name])}
          exact={count(props.of.today[name])}
          note={`${compact(props.of.this_month[name])} this month`}
        />
      </Show>
    )}
  </For>
);
