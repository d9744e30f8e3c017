import type { KeyId } from "../domain.ts";
import type { Store } from "../store/store.ts";
import type { ModelUsage, ModelUsageQuery as StoreQuery } from "../store/traffic-store.ts";
import type { WallClock } from "../time/clock.ts";
import { dayNumberOf, minutesPerDay, minutesPerHour, msPerMinute, offsetMinutes, timestampOf } from "../time/seoul.ts";
import { ApiError } from "./errors.ts";
import type { ModelUsageBody, ModelUsageQuery, PricesBody } from "./insight-schemas.ts";
import { costOf, findPrice, priceDays } from "./price-list.ts";
import { readPrices } from "./prices.ts";

export interface ModelUsageDeps {
  store: Pick<Store, "traffic" | "requests" | "settings">;
  clock: WallClock;
}

type Row = ModelUsageBody["rows"][number];

const maxRows = 5000;
/** How many days one read covers, so that it does not delay what is written. */
const daysPerRead = 31;
const hoursReadDays = 3;
const maxHourDays = 90;
const maxRowsPerRead = 10_000;
const hoursPerDay = 24;

export const getModelUsage =
  ({ store, clock }: ModelUsageDeps) =>
  async ({ query }: { query: ModelUsageQuery }): Promise<ModelUsageBody> => {
    const { days, by, bucket } = query;
    if (bucket === "hour" && days > maxHourDays)
      throw new ApiError(400, `days must be at most ${maxHourDays} if bucket is hour`);
    const prices = await readPrices(store);
    const sums = createSums(query);
    const today = dayNumberOf(clock());
    let isCut = false;
    for (const { from, to } of readsOf(today - days + 1, today + 1, bucket, prices)) {
      const found = await store.traffic.modelUsage(storeQuery(query, from, to, prices.models.length > 0));
      isCut ||= found.length === maxRowsPerRead;
      for (const usage of found) sums.add(usage, findPrice(prices, usage.model, from));
    }
    const rows = sums.rows();
    const names = new Map(await store.requests.keyNames(keysOf(rows)));
    for (const row of rows) if (row.key_id !== null) row.key_name = names.get(row.key_id) ?? "";
    const { currency } = prices;
    return { days, by, bucket, currency, rows: rows.slice(0, maxRows), more: isCut || rows.length > maxRows };
  };

const keysOf = (rows: readonly Row[]): KeyId[] => [
  ...new Set(rows.flatMap(({ key_id: id }) => (id === null ? [] : [id]))),
];

/** Parts of a range of days, in each of which all prices stay the same. Day numbers; `to` is exclusive. */
function readsOf(first: number, end: number, bucket: string, prices: PricesBody): { from: number; to: number }[] {
  const length = bucket === "hour" ? hoursReadDays : daysPerRead;
  const starts = new Set(priceDays(prices).filter((day) => day > first && day < end));
  for (let day = first; day < end; day += length) starts.add(day);
  const sorted = [...starts].toSorted((a, b) => a - b);
  return sorted.map((from, index) => ({ from, to: sorted[index + 1] ?? end }));
}

function storeQuery(query: ModelUsageQuery, from: number, to: number, hasPrices: boolean): StoreQuery {
  const { by, bucket, key_id: keyId, model } = query;
  const isHourly = bucket === "hour";
  const hourOf = (day: number): number => day * hoursPerDay - offsetMinutes / minutesPerHour;
  return {
    unit: isHourly ? "hour" : "day",
    from: isHourly ? hourOf(from) : from,
    to: isHourly ? hourOf(to) : to,
    // Prices differ by model, even if the sums that they belong to do not.
    groupBy: { period: bucket !== "none", key: by !== "model", model: by !== "key" || hasPrices },
    keyId,
    model,
    limit: maxRowsPerRead,
  };
}

function createSums({ by, bucket }: ModelUsageQuery) {
  const sums = new Map<string, { period: number; row: Row }>();
  const unitMinutes = bucket === "hour" ? minutesPerHour : minutesPerDay;
  const shift = bucket === "hour" ? 0 : offsetMinutes;
  /** There may be thousands of rows in each. */
  const starts = new Map<number, string>();

  function startOf(period: number): string {
    const start = starts.get(period) ?? timestampOf((period * unitMinutes - shift) * msPerMinute);
    starts.set(period, start);
    return start;
  }

  const newRow = ({ period, keyId, model }: ModelUsage): Row => ({
    bucket_start: bucket === "none" ? null : startOf(period),
    key_id: by === "model" ? null : keyId,
    key_name: null,
    model: by === "key" ? null : model,
    request_count: 0,
    input_tokens: 0,
    cached_input_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    cost: null,
    cost_is_partial: false,
  });

  return {
    add(usage: ModelUsage, price: ReturnType<typeof findPrice>): void {
      const id = `${usage.period} ${usage.keyId} ${by === "key" ? "" : usage.model}`;
      const row = sums.get(id)?.row ?? newRow(usage);
      sums.set(id, { period: usage.period, row });
      row.request_count += usage.requestCount;
      row.input_tokens += usage.inputTokens;
      row.cached_input_tokens += usage.cachedInputTokens;
      row.output_tokens += usage.outputTokens;
      row.reasoning_tokens += usage.reasoningTokens;
      if (price !== undefined) row.cost = (row.cost ?? 0) + costOf(price, usage);
      else if (usage.inputTokens + usage.outputTokens > 0) row.cost_is_partial = true;
    },
    rows: (): Row[] =>
      [...sums.values()]
        .toSorted((a, b) => a.period - b.period || tokensOf(b.row) - tokensOf(a.row))
        .map(({ row }) => row),
  };
}

const tokensOf = (row: Row): number => row.input_tokens + row.output_tokens;
