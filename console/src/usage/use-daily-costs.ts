import { createMemo } from "solid-js";
import { costsByLine, lineId } from "./daily-costs.ts";
import type { DailyUsageLine } from "./daily-usage.ts";
import { useModelUsageQuery, usePricesQuery } from "../insight-queries.ts";
import { addCosts } from "./model-usage.ts";
import type { Cost } from "../lib/money.ts";
import type { KeySelection } from "./usage-buckets.ts";

export interface DailyCosts {
  /** Undefined without prices. */
  currency: () => string | undefined;
  /** Of a day, or of a key on it; undefined while it is not known. */
  costOf: (line: Pick<DailyUsageLine, "date" | "key">) => Cost | undefined;
  /** Of several days. What is not known of them makes it partial. */
  sumOf: (days: readonly DailyUsageLine[]) => Cost | undefined;
}

/** As far as the API goes back. */
const maxDays = 365;

/** What the days of the daily usage cost. Nothing is loaded if there are no prices of models. */
export function useDailyCosts(days: () => number, selection: () => KeySelection, perKey: () => boolean): DailyCosts {
  const prices = usePricesQuery();
  const hasPrices = (): boolean => (prices.data?.models.length ?? 0) > 0;
  const isOfAll = (): boolean => selection().search.trim() === "" && selection().hiddenIds.length === 0;
  const keyId = (): number | undefined => (selection().key === undefined ? undefined : Number(selection().key));
  const usage = useModelUsageQuery(
    // The list of days has one more: the day that began so many days ago.
    () => ({
      days: Math.min(days() + 1, maxDays),
      by: perKey() || !isOfAll() ? "key" : "model",
      bucket: "day",
      keyId: keyId(),
    }),
    () => hasPrices() && (selection().key === undefined || /^[1-9]\d{0,14}$/.test(selection().key ?? "")),
  );
  const costs = createMemo(() => (usage.isPlaceholderData ? undefined : costsByLine(usage.data, selection())));
  return {
    currency: () => (hasPrices() ? (prices.data?.currency ?? undefined) : undefined),
    costOf: ({ date, key }) => (key === undefined ? costs()?.days.get(date) : costs()?.keys.get(lineId(date, key.id))),
    sumOf: (lines) => {
      const shown = costs();
      return shown && addCosts(lines.map((line) => shown.days.get(line.date) ?? unknownCost(line)));
    },
  };
}

const unknownCost = ({ input, output }: DailyUsageLine): Cost => ({ cost: null, cost_is_partial: input + output > 0 });
