import { A } from "@solidjs/router";
import { createMemo, For, type JSX, Match, Show, Switch } from "solid-js";
import { counterLabels, counters } from "../lib/counters.ts";
import { downloadCsv } from "../lib/csv.ts";
import { plural } from "../lib/format.ts";
import { costLabel, costTitle } from "../lib/money.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { Icon } from "../ui/icon.tsx";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { NumberHeads } from "../ui/table-head.tsx";
import { addModelUsage, modelLabel, modelUsageCsv, mostFirst, type UsageSumsRow } from "./model-usage.ts";
import { type CostRow, type Costs, useCostsQuery } from "./cost-queries.ts";
import { everyKey, keyIdOf } from "./usage-buckets.ts";
import { NumberCell } from "./usage-cells.tsx";
import "../styles/lazy-pages.css";

const groupOptions = [
  { value: "model", label: "Model" },
  { value: "key", label: "Key" },
  { value: "key_model", label: "Both" },
  { value: "day", label: "Day" },
  { value: "tag", label: "Tag" },
  { value: "owner", label: "Owner" },
] as const;
type Group = (typeof groupOptions)[number]["value"];

const dayOptions = ["1", "7", "30", "90", "365"].map((value) => ({
  value,
  label: value === "1" ? "Today" : `${value} d`,
}));

/** Tokens, cached input and cost, by model, by key, by both or by day. Of one key with a key in the URL, or with `keyId`. */
export function ModelUsagePanel(props: { keyId?: number }): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"by" | "span" | "key">();
  const options = (): readonly { value: Group; label: string }[] =>
    groupOptions.filter(({ value }) => props.keyId === undefined || value === "model" || value === "day");
  const group = (): Group => options().find(({ value }) => value === parameters.by)?.value ?? "model";
  const days = (): string => dayOptions.find(({ value }) => value === parameters.span)?.value ?? "30";
  const keyId = (): number | undefined => props.keyId ?? keyIdOf(parameters.key);
  const usage = useCostsQuery(() => ({
    days: Number(days()),
    by: group(),
    selection: { ...everyKey, key: keyId() === undefined ? undefined : String(keyId()) },
  }));
  const rows = createMemo((): CostRow[] | undefined => usage.data && mostFirst(usage.data.rows));
  // Not within the JSX: read by a click, a condition there would create a memo outside of a root.
  const current = (): CostRow[] | undefined => (usage.isPlaceholderData ? undefined : rows());
  return (
    <Panel
      title="Models and cost"
      query={usage}
      hint={props.keyId === undefined && keyId() !== undefined ? `Key ${keyId()} only` : undefined}
      actions={
        <>
          <SegmentedControl
            label="Group models by"
            options={options()}
            value={group()}
            onChange={(by) => setParameters({ by: by === "model" ? undefined : by }, { replace: true })}
          />
          <SegmentedControl
            label="Days of models"
            options={dayOptions}
            value={days()}
            onChange={(span) => setParameters({ span: span === "30" ? undefined : span }, { replace: true })}
          />
          <CsvButton rows={current()} fileName={`usage-by-${group()}-${days()}-days.csv`} />
        </>
      }
    >
      <Switch
        fallback={
          <UsageTable
            rows={rows()}
            choice={JSON.stringify([group(), days(), keyId()])}
            usage={usage.data}
            isStale={usage.isPlaceholderData}
          />
        }
      >
        <Match when={usage.data === undefined && usage.isError}>
          <NotLoaded query={usage} />
        </Match>
        <Match when={rows()?.length === 0}>
          <EmptyState title="No usage by model in these days">
            <p>A request appears here with the model that it was sent to.</p>
          </EmptyState>
        </Match>
      </Switch>
      <Notes usage={usage.data} />
    </Panel>
  );
}

const CsvButton = (props: { rows: CostRow[] | undefined; fileName: string }): JSX.Element => (
  <button
    class="button"
    type="button"
    disabled={(props.rows?.length ?? 0) === 0}
    onClick={() => downloadCsv(props.fileName, modelUsageCsv(props.rows ?? []))}
  >
    <Icon name="download" />
    CSV
  </button>
);

/** @param props the rows are undefined while they load; the choice is that of days, grouping and key, as text */
function UsageTable(props: {
  rows: CostRow[] | undefined;
  choice: string;
  usage: Costs | undefined;
  isStale: boolean;
}): JSX.Element {
  const scroll = createInfiniteScroll(() => props.rows ?? [], { choice: () => props.choice });
  const by = (): string => props.usage?.request.by ?? "model";
  const hasKey = (): boolean => by() === "key" || by() === "key_model";
  const hasModel = (): boolean => by() === "model" || by() === "key_model";
  /** The first column of rows of neither. */
  const label = (): string | undefined =>
    groupOptions.find(({ value }) => value === by() && !hasKey() && !hasModel())?.label;
  const currency = (): string | undefined => props.usage?.currency ?? undefined;
  const columns = { label, hasKey, hasModel, currency };
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone models" classList={{ stale: props.isStale }} aria-busy={props.isStale}>
          <caption class="visually-hidden">Usage by model</caption>
          <UsageHead {...columns} />
          <tbody>
            <Show when={props.rows} fallback={<SkeletonRows columns={6} />}>
              <For each={scroll.shown()}>{(row) => <UsageRow row={row} {...columns} />}</For>
            </Show>
          </tbody>
          <Show when={props.rows}>
            {(rows) => (
              <tfoot>
                <tr>
                  <th scope="row" colspan={hasKey() && hasModel() ? 2 : 1}>
                    {plural(rows().length, "row")}
                  </th>
                  {/* A key may have several tags. */}
                  <Show when={by() !== "tag"}>
                    <SumCells row={addModelUsage(rows())} currency={currency()} />
                  </Show>
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

interface Columns {
  label: () => string | undefined;
  hasKey: () => boolean;
  hasModel: () => boolean;
  currency: () => string | undefined;
}

const UsageHead = (props: Columns): JSX.Element => (
  <thead>
    <tr>
      <Show when={props.label()}>{(label) => <th scope="col">{label()}</th>}</Show>
      <Show when={props.hasKey()}>
        <th scope="col">Key</th>
      </Show>
      <Show when={props.hasModel()}>
        <th scope="col">Model</th>
      </Show>
      <NumberHeads labels={["Requests", ...Object.values(counterLabels)]} />
      <Show when={props.currency()}>
        <th scope="col" class="number">
          Cost
        </th>
      </Show>
    </tr>
  </thead>
);

function UsageRow(props: Columns & { row: CostRow }): JSX.Element {
  const model = (): JSX.Element => (
    <Show when={props.row.model} fallback={modelLabel(props.row.model ?? "")}>
      {(name) => (
        <A href={`/requests?${new URLSearchParams({ model: name() }).toString()}`} title={name()}>
          {modelLabel(name())}
        </A>
      )}
    </Show>
  );
  return (
    <tr>
      <Show when={props.label()}>
        {(label) => (
          <th scope="row" class="cut">
            <bdi>{props.row.date ?? (props.row.tag || props.row.owner || `No ${label().toLowerCase()}`)}</bdi>
          </th>
        )}
      </Show>
      <Show when={props.hasKey()}>
        <th scope="row" class="cut" title={props.row.key_name ?? undefined}>
          <Show when={props.row.key_name} fallback={<span class="faint">Deleted key {props.row.key_id}</span>}>
            {(name) => <A href={`/keys/${props.row.key_id}`}>{name()}</A>}
          </Show>
        </th>
      </Show>
      <Show when={props.hasModel()}>
        <Show
          when={props.hasKey()}
          fallback={
            <th scope="row" class="cut">
              {model()}
            </th>
          }
        >
          <td class="cut" data-label="Model">
            {model()}
          </td>
        </Show>
      </Show>
      <SumCells row={props.row} currency={props.currency()} />
    </tr>
  );
}

const SumCells = (props: { row: UsageSumsRow; currency: string | undefined }): JSX.Element => (
  <>
    <NumberCell label="Requests" value={props.row.request_count} />
    <For each={counters}>{(counter) => <NumberCell label={counterLabels[counter]} value={props.row[counter]} />}</For>
    <Show when={props.currency}>
      {(currency) => (
        <td class="number" data-label="Cost" title={costTitle(props.row)}>
          {costLabel(props.row, currency())}
        </td>
      )}
    </Show>
  </>
);

function Notes(props: { usage: Costs | undefined }): JSX.Element {
  return (
    <p class="footnote">
      Input is what the backend reported: on /v1/messages it leaves cached input out, elsewhere cached input is part of
      it.{" "}
      <Show when={props.usage?.currency === null}>
        <A href="/settings/prices">Enter prices</A> to see costs.{" "}
      </Show>
      <Show when={props.usage?.request.by === "tag"}>A key with several tags counts for each of them.</Show>
    </p>
  );
}
