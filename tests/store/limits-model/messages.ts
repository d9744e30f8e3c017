import type { Admission } from "../../../src/domain/admissions.ts";
import type { LimitName, Subject } from "../../../src/domain/keys.ts";
import type { CountedFor } from "../../../src/domain/usage.ts";

/** What an instance of the model is started with, as JSON in its first argument. */
export interface InstanceOptions {
  dataDir: string;
  databaseUrl: string | undefined;
  /** By how much its clock is ahead of the machine's. */
  skewMs: number;
  beatMs: number;
  deadAfterMs: number;
  /** How long a request waits for the database, if not as long as in the program. */
  waitLimitMs?: number;
}

/** What the driver, which is the clients and the backend, tells an instance. */
export type ToInstance =
  | { kind: "ask"; number: number; of: CountedFor; subjects: Subject[]; tokens: number }
  /** The request is over. @param tokens counted for it; null if its response does not count. @param isSent the backend had it */
  | { kind: "respond"; number: number; tokens: number | null; isSent: boolean };

/** What counted against each limit, as responses report it; nothing while the database fails. */
export type ReportedUse = Partial<Record<LimitName, number | undefined>>;

export interface Decision extends Pick<Admission, "refusedBy" | "at"> {
  askedAt: number;
  decidedAt: number;
  /** Of each subject. */
  used: ReportedUse[];
}

/** What an instance tells the driver. Times are the machine's, whatever the instance's clock. */
export type FromInstance =
  | { kind: "ready" }
  | ({ kind: "decided"; number: number } & Decision)
  /** What it held is given back, and its tokens are committed, if they count, unless its count may wait for the database. */
  | { kind: "ended"; number: number; at: number; mayWait: boolean }
  | { kind: "warned"; text: string };
