// The store's contract for the request log: a row for each request, and corrections of it.
//
// It keeps true: a row of a request that counts is written with its counts, in one transaction. A read looks at a
// bounded number of rows, so that flushes run in between: it may find none and still have a `next`. Ids rise with time,
// but for what a flush wrote late. What a row has is the table of `domain/request-fields.ts`; `log.ts` deletes by age
// and number.

import type { KeyId, SubjectId, TeamId, UserId } from "../../domain/keys.ts";
import type { ClientRule } from "../../domain/models.ts";
import type { RequestFieldValues } from "../../domain/request-fields.ts";
import type { Outcome } from "../../domain/requests.ts";
import type { Usage } from "../../domain/usage.ts";

/** A row of the request log on its way into the database. */
export interface RequestRow {
  /** In the order of `requestColumns`. */
  values: (string | number | null)[];
  /** Its tokens are those that this response adds to the counts, which only the transaction shows. */
  responseId: string | null;
}

/** What came, of a request, after its row was written: usage, or its end. */
export interface RequestAmendment extends Usage {
  requestId: string;
  keyId: KeyId;
  /** Set if only the transaction shows its tokens: those that this response adds to the counts. */
  responseId: string | null;
  /** With the duration that is in the row, by which it is known: clients may give several requests one id. */
  end?: { writtenUs: number; durationUs: number; responseBytes: number | undefined };
}

/** What one flush writes to the request log. */
export interface FlushedRequests {
  rows: readonly RequestRow[];
  amendments: readonly RequestAmendment[];
}

/** How long and how many requests are kept; 0 days: none. */
export interface RequestLogLimits {
  days: number;
  rows: number;
}

/** A row of the request log. */
export type LoggedRequest = { id: number } & RequestFieldValues;

/** Which requests are meant; unset fields match all. */
export interface RequestFilter {
  keyId?: KeyId | undefined;
  /** 0: of keys without a team. */
  teamId?: TeamId | undefined;
  /** 0: nobody's in particular. */
  userId?: UserId | undefined;
  /** The name that was sent to the backend. */
  model?: string | undefined;
  backend?: string | undefined;
  /** Inclusive. */
  status?: { from: number; to: number } | undefined;
  outcome?: Outcome | undefined;
  /** Only those that did not complete with a status below 400. */
  failed?: boolean | undefined;
  /** Only those of which `lacksUsage` is true. */
  withoutUsage?: boolean | undefined;
  path?: string | undefined;
  /** A program, of any version, or one with its version. */
  client?: string | undefined;
  requestClass?: string | undefined;
  address?: string | undefined;
  conversation?: number | undefined;
  requestId?: string | undefined;
  traceId?: string | undefined;
  minDurationMs?: number | undefined;
  /** Epoch milliseconds; `since` inclusive, `until` exclusive. */
  since?: number | undefined;
  until?: number | undefined;
}

/** A place in the request log, between two rows. */
export interface RequestPosition {
  /** Epoch milliseconds. */
  endedAt: number;
  id: number;
}

/** Part of a search through the log. */
export interface RequestPage {
  /** Latest first. */
  requests: LoggedRequest[];
  /** Where the search continues; undefined at the end of the log. */
  next: RequestPosition | undefined;
}

/** What requests may have in common. Null: the request does not have it. */
export interface RequestTraits extends Pick<
  LoggedRequest,
  | "client"
  | "requestClass"
  | "keyId"
  | "teamId"
  | "userId"
  | "modelSent"
  | "backend"
  | "path"
  | "status"
  | "outcome"
  | "address"
  | "conversation"
  | "cacheLoss"
> {
  /** On which it ended, in Seoul. */
  day: number;
  /** The backend refused the body. */
  isRefused: boolean;
  /** Less than half of its input came from a cache. */
  isReadAnew: boolean;
  /** Those that mended the body. */
  clientRules: ClientRule[];
}

export type RequestTrait = keyof RequestTraits;

/** Sums over requests. Tokens that were not counted are 0. */
export interface RequestSums {
  requestCount: number;
  /** Those of which it is known why their input did not come from a cache. */
  lostCount: number;
  /** Whole prompts, with what came from a cache, in each dialect. */
  promptTokens: number;
  fromCacheTokens: number;
  outputTokens: number;
}

/** Sums of a part of the log. */
export interface RequestSumsPage<Trait extends RequestTrait> {
  /** One for each group of requests that have these traits in common. */
  sums: (RequestSums & Pick<RequestTraits, Trait>)[];
  /** Where the log continues; undefined at its end. */
  next: RequestPosition | undefined;
}

export interface RequestLogStore {
  /**
   * The requests before a position and above an id, latest first, at most `limit`. Looks at a bounded number of rows, so it
   * may find none and still have a `next`.
   */
  list(filter: RequestFilter, limit: number, before?: RequestPosition, after?: number): Promise<RequestPage>;
  /**
   * Adds up the requests before a position that have the same traits. Looks at a bounded number of rows, the latest first.
   */
  sum<Trait extends RequestTrait>(
    traits: readonly Trait[],
    filter: RequestFilter,
    before?: RequestPosition,
  ): Promise<RequestSumsPage<Trait>>;
  /** The highest id, or 0. */
  lastId(): Promise<number>;
  oldest(): Promise<Pick<RequestPosition, "id" | "endedAt"> | undefined>;
  /** The names of keys, teams and users, the last ones of those that are deleted. */
  keyNames(ids: readonly SubjectId[]): Promise<[SubjectId, string][]>;
}
