import { A } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { counterLabels, counters } from "../lib/counters.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { useHasTeams, useHasUsers } from "../queries.ts";
import { CsvButton, SegmentedControl } from "../ui/controls.tsx";
import { CostCell, NumberCell, NumberHeads } from "../ui/number-columns.tsx";
import { EmptyState, Panel } from "../ui/panel.tsx";
import { SumsTable } from "../ui/sums-table.tsx";
import { addModelUsage, modelLabel, modelUsageCsv, mostFirst, type UsageSumsRow } from "./model-usage.ts";
import { type CostRow, type Costs, useCostsQuery } from "./cost-queries.ts";
import { everyKey, keyIdOf } from "./usage-buckets.ts";
import "../styles/lazy-pages.css";

const groupOptions = [
  { value: "model", label: "Model" },
  { value: "key", label: "Key" },
  { value: "key_model", label: "Both" },
  { value: "day", label: "Day" },
  { value: "tag", label: "Tag" },
  { value: "owner", label: "Owner" },
  { value: "team", label: "Team" },
  { value: "user", label: "User" },
] as const;
type Group = (typeof groupOptions)[number]["value"];

const dayOptions = ["1", "7", "30", "90", "365"].map((value) => ({
  value,
  label: value === "1" ? "Today" : `${value} d`,
}));

/** Of one key or team, the others are not told apart. */
const groupsOfKey: ReadonlySet<Group> = new Set(["model", "day", "user"]);
const groupsOfTeam: ReadonlySet<Group> = new Set(["model", "key", "key_model", "day", "user"]);

/** Tokens, cached input and cost, by model, by key, by both or by day. Of one key with a key in the URL, or with `keyId`. */
export function ModelUsagePanel(props: { keyId?: number; teamId?: number }): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"by" | "span" | "key">();
  const hasTeams = useHasTeams();
  const hasUsers = useHasUsers();
  const isOffered = (group: Group): boolean => {
    if (group === "user" && !hasUsers()) return false;
    if (props.keyId !== undefined) return groupsOfKey.has(group);
    if (props.teamId !== undefined) return groupsOfTeam.has(group);
    return group !== "team" || hasTeams();
  };
  const options = (): readonly { value: Group; label: string }[] =>
    groupOptions.filter(({ value }) => isOffered(value));
  const group = (): Group => options().find(({ value }) => value === parameters.by)?.value ?? "model";
  const days = (): string => dayOptions.find(({ value }) => value === parameters.span)?.value ?? "30";
  const keyId = (): number | undefined =>
    props.keyId ?? (props.teamId === undefined ? keyIdOf(parameters.key) : undefined);
  const usage = useCostsQuery(() => ({
    days: Number(days()),
    by: group(),
    teamId: props.teamId,
    selection: { ...everyKey, key: keyId() === undefined ? undefined : String(keyId()) },
  }));
  const rows = createMemo((): CostRow[] | undefined => usage.data && mostFirst(usage.data.rows));
  // Not within the JSX: read by a click, a condition there would create a memo outside of a root.
  const current = (): CostRow[] => (usage.isPlaceholderData ? [] : (rows() ?? []));
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
          <CsvButton
            disabled={current().length === 0}
            fileName={`usage-by-${group()}-${days()}-days.csv`}
            text={() => modelUsageCsv(current())}
          />
        </>
      }
    >
      <UsageTable
        rows={rows()}
        choice={JSON.stringify([group(), days(), keyId()])}
        query={usage}
        by={usage.data?.request.by ?? "model"}
        currency={usage.data?.currency ?? undefined}
      />
      <Notes usage={usage.data} />
    </Panel>
  );
}

/** @param props the rows are undefined while they load; the choice is that of days, grouping and key, as text */
function UsageTable(props: {
  rows: CostRow[] | undefined;
  choice: string;
  query: ReturnType<typeof useCostsQuery>;
  by: string;
  currency: string | undefined;
}): JSX.Element {
  const hasKey = (): boolean => props.by === "key" || props.by === "key_model";
  const hasModel = (): boolean => props.by === "model" || props.by === "key_model";
  const columns = {
    label: () => groupOptions.find(({ value }) => value === props.by && !hasKey() && !hasModel())?.label,
    hasKey,
    hasModel,
    currency: () => props.currency,
  };
  return (
    <SumsTable
      caption="Usage by model"
      query={props.query}
      rows={props.rows}
      choice={props.choice}
      span={hasKey() && hasModel() ? 2 : 1}
      numbers={5}
      head={<UsageHeads {...columns} />}
      foot={
        // A key may have several tags.
        <Show when={props.by !== "tag"}>
          <SumCells row={addModelUsage(props.rows ?? [])} currency={props.currency} />
        </Show>
      }
      empty={
        <EmptyState title="No usage by model in these days">
          <p>A request appears here with the model that it was sent to.</p>
        </EmptyState>
      }
    >
      {(row) => <UsageCells row={row} {...columns} />}
    </SumsTable>
  );
}

interface Columns {
  /** The first column of rows of neither key nor model. */
  label: () => string | undefined;
  hasKey: () => boolean;
  hasModel: () => boolean;
  currency: () => string | undefined;
}

const UsageHeads = (props: Columns): JSX.Element => (
  <>
    <Show when={props.label()}>{(label) => <th scope="col">{label()}</th>}</Show>
    <Show when={props.hasKey()}>
      <th scope="col">Key</th>
    </Show>
    <Show when={props.hasModel()}>
      <th scope="col">Model</th>
    </Show>
    <NumberHeads
      labels={["Requests", ...Object.values(counterLabels), ...(props.currency() === undefined ? [] : ["Cost"])]}
    />
  </>
);

function UsageCells(props: Columns & { row: CostRow }): JSX.Element {
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
    <>
      <Show when={props.label()}>
        {(label) => (
          <th scope="row" class="cut">
            <bdi>
              {props.row.date ??
                (props.row.tag ||
                  props.row.owner ||
                  props.row.team_name ||
                  props.row.user_name ||
                  `No ${label().toLowerCase()}`)}
            </bdi>
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
    </>
  );
}

const SumCells = (props: { row: UsageSumsRow; currency: string | undefined }): JSX.Element => (
  <>
    <NumberCell label="Requests" value={props.row.request_count} />
    <For each={counters}>{(counter) => <NumberCell label={counterLabels[counter]} value={props.row[counter]} />}</For>
    <CostCell cost={props.row} currency={props.currency} />
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
