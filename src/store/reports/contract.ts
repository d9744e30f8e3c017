// The store's contract for counts as the console draws and lists them: by day, by bucket, as a chart, and as costs.
//
// It keeps true: a report is read in slices on demand: flushes run in between, and no process holds a whole one of the
// first two, which can be long. Days and buckets are Seoul's. It writes nothing.

import type { KeyId, SubjectId, TeamId, UserId } from "../../domain/keys.ts";
import type { ModelPrice } from "../../domain/prices.ts";
import type { CountedField, UsageSum } from "../../domain/usage.ts";

export interface BucketRange {
  /** Epoch milliseconds. Minutes that end before it are left out, so the first bucket may be partial. */
  since: number;
  /** Buckets are aligned to midnight in Seoul. */
  bucketMinutes: number;
}

/** Which usage a report covers; undefined: all. */
export interface UsageFilter {
  keyId?: KeyId | undefined;
  /** Only what keys used while they were in it; 0: while they had no team. */
  teamId?: TeamId | undefined;
  /** 0: nobody's in particular. */
  userId?: UserId | undefined;
  model?: string | undefined;
  /** Empty: of keys without a tag or an owner. */
  tag?: string | undefined;
  owner?: string | undefined;
}

export type ChartGroup = "key" | "team" | "user" | "model";

/** Of a key, a team or a user, or the name of a model. */
export type GroupId = number | string;

export type UsageMetric = "requests" | "input" | "output" | "total";

/** Minutes are counted since the epoch. */
export interface ChartRange extends UsageFilter {
  /** What has a series. Only keys have buckets of less than an hour, and without a team, user or model to filter by. */
  by?: ChartGroup;
  /** The start of a bucket. */
  from: number;
  /** The end of a bucket. */
  to: number;
  bucketMinutes: number;
  /** Orders the keys and is the value of each bucket. */
  metric: UsageMetric;
  /** How many have a series of their own. */
  top: number;
  /** How many are listed with their sums. */
  listed: number;
  /** What the caller has already: the series of these keys up to the bucket that starts at `minute`. */
  known?: { ids: readonly GroupId[]; minute: number } | undefined;
}

declare const body: unique symbol;

/** Chunks of JSON text that concatenate to one `Body`; most are empty, since each part of the database is read on demand. */
export interface Report<Body> extends AsyncIterable<Uint8Array> {
  readonly [body]?: Body;
}

/** One array for each counter: a fraction of the bytes of an object for each sum. */
type SumColumns = Record<keyof UsageSum, number[]>;

/** The keys, or what else is grouped by, that use the most, and all others as one. */
export interface ChartColumns extends UsageSum {
  /** The start of the first bucket of each series. */
  firstMinute: number;
  /** How many have usage. */
  count: number;
  /** Highest first. */
  listed: SumColumns & { id: GroupId[]; name: string[] };
  series: { id: GroupId; values: number[] }[];
  other: UsageSum & { count: number; values: number[] };
}

export type CostGroup = "day" | "key" | "team" | "user" | "model" | "tag" | "owner" | "key_model";

export interface CostRange extends UsageFilter {
  /** Day numbers in Seoul time, both included. */
  firstDay: number;
  lastDay: number;
  /** Hours since the epoch, the end exclusive: no more than these of the first and the last day. */
  hours?: { from: number; to: number } | undefined;
  by: CostGroup;
  prices: readonly ModelPrice[];
  limit: number;
  /** The last row of the page before. */
  after?: CostPosition | undefined;
}

/** What a row of costs is of, which also orders the rows: latest day, then key, then text. */
export interface CostPosition {
  /** 0 unless the rows are by day. */
  day: number;
  /** Of the team or user if the rows are by these, where 0 is none; 0 unless they are by key. */
  keyId: KeyId;
  /** The model, tag or owner; empty if there is none. */
  text: string;
}

export interface CostSum extends Record<CountedField, number> {
  requestCount: number;
  /** Null if no price is known. */
  cost: number | null;
  /** Some tokens have no price. */
  isPartial: boolean;
}

export type CostRow = CostPosition & CostSum;

export interface CostRows {
  rows: CostRow[];
  /** Of what all rows are of; right if they begin with the first. */
  total: CostSum;
  /** Of what the rows are of, and the range is filtered by. */
  names: [SubjectId, string][];
  /** The labels that keys have. */
  labels: ("tag" | "owner")[];
  /** Where the next page continues; null after the last. */
  next: CostPosition | null;
}

export interface UsageReports {
  /**
   * Usage by day and key, latest day first, from one day in Seoul (`YYYY-MM-DD`) on. The chunks concatenate to JSON objects
   * in the shape of the API, separated by commas, without the brackets. Each chunk is read from the database on demand.
   */
  daily(sinceDay: string): AsyncIterable<Uint8Array>;
  /** Usage by bucket and key, oldest bucket first; chunks like those of `daily`. */
  history(range: BucketRange): AsyncIterable<Uint8Array>;
  chart(range: ChartRange): Report<ChartColumns>;
  /** A page of what tokens cost by the prices of their days. A key with several tags counts for each of them. */
  costs(range: CostRange): Report<CostRows>;
}
