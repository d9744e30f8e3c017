import type { KeyId } from "../../domain/keys.ts";
import type { SettledAdmission } from "../../domain/admissions.ts";
import type { Usage } from "../../domain/usage.ts";
import type { FlushedRequests } from "../requests/contract.ts";
import type { BucketRange, ChartRange, DayRange } from "../reports/usage-ranges.ts";

export interface UsageSum {
  requestCount: number;
  inputTokens: number;
  outputTokens: number;
}

/** The sum of the usage events of one key and model in one minute. */
export interface UsageIncrement extends UsageSum, Usage {
  keyId: KeyId;
  /** Minutes since the epoch. */
  minute: number;
  /** `closedAt` of the latest event, epoch milliseconds. */
  lastClosedAt: number;
  /** Unset: the requests named none. */
  model?: string | undefined;
  /** Of the cached input, what is not part of the input. */
  cachedBesideInputTokens?: number | undefined;
}

/** Usage of a response that the backend stores and may report again under the same id. */
export interface ResponseUsage extends Usage {
  responseId: string;
  keyId: KeyId;
  /** Epoch milliseconds. */
  closedAt: number;
  model?: string | undefined;
}

/** Identifies a flush, so that it counts once even if it is sent again after its response was lost. */
export interface FlushId {
  /** A random id of the ledger that sends it. */
  ledger: string;
  /** Increases with each flush of that ledger. */
  number: number;
}

export interface UsageStore {
  /**
   * Adds the increments to the totals, the days, the hours, the minutes and `lastUsedAt` of their keys, in one transaction.
   * A flush that was committed before changes nothing. Of a response only the tokens above those that were counted for its
   * id before are added.
   * @param responses have different ids
   * @param requests for the request log
   * @param settled admissions that end with these counts
   * @returns the tokens that were added for each of `responses`; undefined if the flush was committed before
   */
  add(
    increments: readonly UsageIncrement[],
    flush?: FlushId,
    responses?: readonly ResponseUsage[],
    requests?: FlushedRequests,
    settled?: readonly SettledAdmission[],
  ): Promise<readonly Usage[] | undefined>;
  /** The sum over all keys of one day in Seoul (`YYYY-MM-DD`). */
  sumOfDay(day: string): Promise<UsageSum>;
  /** The sum over all keys from one minute (inclusive, minutes since the epoch) to another (exclusive). */
  sumOfMinutes(from: number, to: number): Promise<UsageSum>;
  /** The sum over the keys that exist now. */
  sumOfKeys(): Promise<UsageSum>;
  /**
   * Usage by day and key, latest day first, from one day in Seoul (`YYYY-MM-DD`) on. The chunks concatenate to JSON objects
   * in the shape of the API, separated by commas, without the brackets. Each chunk is read from the database on demand.
   */
  daily(sinceDay: string): AsyncIterable<Uint8Array>;
  /** Usage by bucket and key, oldest bucket first; chunks like those of `daily`. */
  history(range: BucketRange): AsyncIterable<Uint8Array>;
  /**
   * The keys that use the most as columns, the others as one. The chunks concatenate to one JSON object in the shape of the
   * API; most of them are empty, since each part of the database is read on demand.
   */
  chart(range: ChartRange): AsyncIterable<Uint8Array>;
  /** The sum of each day, latest first, and the sum over the keys that exist; chunks like those of `chart`. */
  byDay(range: DayRange): AsyncIterable<Uint8Array>;
  /** A page of the latest days by key, latest first, as columns; chunks like those of `chart`. */
  byDayAndKey(range: DayRange): AsyncIterable<Uint8Array>;
}
