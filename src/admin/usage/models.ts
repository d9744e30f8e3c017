import type { Store } from "../../store/store.ts";
import type { ModelUsage, ModelUsageQuery as StoreQuery } from "../../store/traffic/contract.ts";
import type { WallClock } from "../../time/clock.ts";
import {
  dayNumberOf,
  minutesPerDay,
  minutesPerHour,
  msPerMinute,
  offsetMinutes,
  timestampOf,
} from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { counterMembers, counterNames } from "../http/schemas.ts";
import { costOf, type ModelPrice, rankPrices } from "../../domain/prices.ts";
import { partsOf } from "./model-reads.ts";
import { modelPricesOf, readPrices } from "./prices.ts";
import type { KeyId } from "../../domain/keys.ts";
import { listedUsageFields, usageFields } from "../../domain/usage.ts";
import type { ModelUsageBody, ModelUsageQuery } from "./cost-contract.ts";

export interface ModelUsageDeps {
  store: Pick<Store, "traffic" | "requests" | "settings">;
  clock: WallClock;
}

type Row = ModelUsageBody["rows"][number];

const maxRows = 5000;
const maxHourDays = 90;
const maxRowsPerRead = 10_000;
/** Up to two milliseconds of work. */
const rowsPerPortion = 1000;

export const getModelUsage =
  ({ store, clock }: ModelUsageDeps) =>
  async ({ query }: { query: ModelUsageQuery }): Promise<ModelUsageBody> => {
    const { days, by, bucket } = query;
    if (bucket === "hour" && days > maxHourDays)
      throw new ApiError(400, `days must be at most ${maxHourDays} if bucket is hour`);
    const prices = await readPrices(store);
    const ranked = rankPrices(modelPricesOf(prices));
    const sums = createSums(query);
    // Prices differ by model, even if the sums that they belong to do not.
    const addsModels = by === "key" && ranked.length > 0;
    let isCut = false;
    const now = clock();
    const parts = partsOf({ first: dayNumberOf(now) - days + 1, now }, bucket, ranked);
    let part = parts.next(0).value;
    while (part !== undefined) {
      const { priceOf } = part;
      const found = await store.traffic.modelUsage(storeQuery(query, part, addsModels));
      // Models that were added for their prices and do not fit leave the costs incomplete, but not the counts. These are read
      // second, so that they include all that the costs are of.
      const isRecount = addsModels && found.length === maxRowsPerRead;
      const counted = isRecount ? await store.traffic.modelUsage(storeQuery(query, part, false)) : found;
      isCut ||= counted.length === maxRowsPerRead;
      await inPortions(counted, sums.count);
      await inPortions(found, (usage) => sums.charge(usage, priceOf(usage.model)));
      part = parts.next(found.length).value;
      // Listed are the latest periods, and what is left is before them.
      if (bucket === "none" || part === undefined || sums.rowCount() <= maxRows) continue;
      isCut = true;
      break;
    }
    const rows = sums.listedRows();
    const names = new Map(await store.requests.keyNames(keysOf(rows)));
    for (const row of rows) if (row.key_id !== null) row.key_name = names.get(row.key_id) ?? "";
    const { currency } = prices;
    return { days, by, bucket, currency, rows, more: isCut || rows.length < sums.rowCount() };
  };

/** Streams go on between the portions, and after the parsing of what was read. */
async function inPortions(usages: readonly ModelUsage[], add: (usage: ModelUsage) => void): Promise<void> {
  for (let added = 0; added < usages.length; added += rowsPerPortion) {
    await new Promise(setImmediate);
    for (const usage of usages.slice(added, added + rowsPerPortion)) add(usage);
  }
}

const keysOf = (rows: readonly Row[]): KeyId[] => [
  ...new Set(rows.flatMap(({ key_id: id }) => (id === null ? [] : [id]))),
];

function storeQuery(
  query: ModelUsageQuery,
  { unit, from, to }: Pick<StoreQuery, "unit" | "from" | "to">,
  addsModels: boolean,
): StoreQuery {
  const { by, bucket, key_id: keyId, model } = query;
  return {
    unit,
    from,
    to,
    groupBy: { period: bucket !== "none", key: by !== "model", model: by !== "key" || addsModels },
    latestFirst: bucket !== "none" && !addsModels,
    keyId,
    model,
    limit: maxRowsPerRead,
  };
}

interface Sum {
  period: number;
  row: Row;
  unpricedTokens: number;
}

function createSums({ by, bucket }: ModelUsageQuery) {
  const sums = new Map<string, Sum>();
  const unitMinutes = bucket === "hour" ? minutesPerHour : minutesPerDay;
  const shift = bucket === "hour" ? 0 : offsetMinutes;
  /** There may be thousands of rows in each. */
  const starts = new Map<number, string>();

  function startOf(period: number): string {
    const start = starts.get(period) ?? timestampOf((period * unitMinutes - shift) * msPerMinute);
    starts.set(period, start);
    return start;
  }

  const idOf = ({ period, keyId, model }: ModelUsage): string => `${period} ${keyId} ${by === "key" ? "" : model}`;

  const newRow = ({ period, keyId, model }: ModelUsage): Row => ({
    bucket_start: bucket === "none" ? null : startOf(period),
    key_id: by === "model" ? null : keyId,
    key_name: null,
    model: by === "key" ? null : model,
    request_count: 0,
    ...counterMembers(() => 0, listedUsageFields),
    cost: null,
    cost_is_partial: false,
  });

  return {
    count(usage: ModelUsage): void {
      const id = idOf(usage);
      const sum = sums.get(id) ?? { period: usage.period, row: newRow(usage), unpricedTokens: 0 };
      sums.set(id, sum);
      sum.unpricedTokens += pricedTokensOf(usage);
      sum.row.request_count += usage.requestCount;
      for (const field of usageFields) sum.row[counterNames[field]] += usage[field];
    },
    /** Adds to the cost of what is counted. */
    charge(usage: ModelUsage, price: ModelPrice | undefined): void {
      const sum = sums.get(idOf(usage));
      if (sum === undefined || price === undefined) return;
      sum.unpricedTokens -= pricedTokensOf(usage);
      sum.row.cost = (sum.row.cost ?? 0) + costOf(price, usage);
    },
    rowCount: (): number => sums.size,
    /** Oldest first, in each period most tokens first. */
    listedRows(): Row[] {
      const listed = latestOrLargest([...sums.values()]).toSorted((a, b) => a.period - b.period);
      for (const { row, unpricedTokens } of listed) row.cost_is_partial = unpricedTokens > 0;
      return listed.map(({ row }) => row);
    },
  };
}

/** Picks as many as are listed: whole periods, the latest ones; of a single period, those with the most tokens. */
function latestOrLargest(sums: readonly Sum[]): readonly Sum[] {
  const sorted = sums.toSorted((a, b) => b.period - a.period || tokensOf(b.row) - tokensOf(a.row));
  const kept = sorted.slice(0, maxRows);
  const whole = kept.filter(({ period }) => period !== sorted[maxRows]?.period);
  return whole.length > 0 ? whole : kept;
}

const tokensOf = (row: Row): number => row.input_tokens + row.output_tokens;

const pricedTokensOf = (usage: ModelUsage): number =>
  usage.inputTokens + usage.cachedBesideInputTokens + usage.outputTokens;
