import { type JSX, Show } from "solid-js";
import { type Cost, costLabel, costTitle } from "../lib/money.ts";
import { usePricesQuery } from "../queries.ts";
import { Figure } from "../ui/figure.tsx";
import { addModelUsage } from "./model-usage.ts";
import { type CostRow, lastDays, useCostsQuery } from "./cost-queries.ts";
import { everyKey } from "./usage-buckets.ts";

const days = 30;

/** What today and the last 30 days cost, of all keys or of one; nothing without prices of models. */
export function CostFigure(props: { keyId?: number }): JSX.Element {
  const prices = usePricesQuery();
  const hasPrices = (): boolean => (prices.data?.models.length ?? 0) > 0;
  const costs = useCostsQuery(
    () => ({
      days,
      by: "day",
      selection: { ...everyKey, key: props.keyId === undefined ? undefined : String(props.keyId) },
    }),
    { enabled: hasPrices },
  );
  const labelOf = (rows: readonly CostRow[], currency: string): string => costLabel(sumOf(rows), currency);
  const today = (rows: readonly CostRow[]): CostRow[] => rows.filter(({ date }) => date === lastDays(1).to);
  return (
    <Show when={hasPrices()}>
      <Figure
        label="Cost today (KST)"
        failed={costs.isError}
        value={costs.data && labelOf(today(costs.data.rows), costs.data.currency ?? "")}
        exact={costs.data && costTitle(sumOf(today(costs.data.rows)))}
        note={
          <Show when={costs.data}>
            {(data) => (
              <span title={costTitle(sumOf(data().rows))}>
                {labelOf(data().rows, data().currency ?? "")} in {days} days
              </span>
            )}
          </Show>
        }
      />
    </Show>
  );
}

/** Nothing used costs nothing. */
const sumOf = (rows: readonly CostRow[]): Cost =>
  rows.length === 0 ? { cost: 0, cost_is_partial: false } : addModelUsage(rows);
