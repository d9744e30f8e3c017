import { type JSX, Show } from "solid-js";
import { type Cost, costLabel, costTitle } from "../lib/money.ts";
import { seoulDay } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { usePricesQuery } from "../queries.ts";
import { Figure } from "../ui/figure.tsx";
import { rangeOf, useCostsQuery } from "./report-queries.ts";

const days = 30;
/** Nothing used costs nothing. */
const nothing: Cost = { cost: 0, cost_is_partial: false };

/** What today and the last 30 days of a key cost; nothing without prices of models. */
export function CostFigure(props: { keyId: number }): JSX.Element {
  const prices = usePricesQuery();
  const hasPrices = (): boolean => (prices.data?.models.length ?? 0) > 0;
  const costs = useCostsQuery(
    () => ({
      range: rangeOf(`${days}d`),
      by: "day",
      filter: { key: String(props.keyId) },
    }),
    { enabled: hasPrices },
  );
  const today = (): Cost => costs.data?.rows.find(({ date }) => date === seoulDay(serverNow())) ?? nothing;
  const all = (): Cost => (costs.data?.rows.length ? (costs.data.total ?? nothing) : nothing);
  const label = (cost: Cost): string => costLabel(cost, costs.data?.currency ?? "");
  return (
    <Show when={hasPrices()}>
      <Figure
        label="Cost today (KST)"
        failed={costs.isError}
        value={costs.data && label(today())}
        exact={costs.data && costTitle(today())}
        note={
          <Show when={costs.data}>
            <span title={costTitle(all())}>
              {label(all())} in {days} days
            </span>
          </Show>
        }
      />
    </Show>
  );
}
