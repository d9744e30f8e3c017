import type { Log } from "../../log/log.ts";
import { minuteOf } from "../../time/seoul.ts";
import type { RequestRow } from "../requests/contract.ts";
import { cleanText, keyIdOf, maxModelLength, requestRowOf } from "../requests/row.ts";
import type { FlushedRequests, RequestAmendment } from "../requests/contract.ts";
import type { KeyId, SubjectId } from "../../domain/keys.ts";
import type { SettledAdmission } from "../../domain/admissions.ts";
import type { RequestRecord } from "../../domain/requests.ts";
import {
  addUsageTo,
  chargedTokens,
  type CountedFor,
  type CountedUsage,
  createIncrement,
  noUsage,
  pickUsage,
  type ResponseUsage,
  subjectsOf,
  type UsageIncrement,
  responseRef,
} from "../../domain/usage.ts";
import type { UsageEvent } from "../../domain/usage-event.ts";

/** What one flush writes. */
export interface FlushedUsage {
  increments: readonly UsageIncrement[];
  responses: readonly ResponseUsage[];
  requests?: FlushedRequests;
  /** The keys whose limits its tokens count against. */
  settled: readonly SettledAdmission[];
}

/** Bounds the memory of a long outage. Further ones count whether or not they did before, and are nobody's. */
const maxResponses = 100_000;
/** Rows of the log that wait in memory; further ones are lost, while their counts are not. */
const maxRequests = 10_000;
/** The sums of further models wait under one name: clients choose the names. */
const maxModels = 5000;
export const otherModels = "other";

/** Adds usage events up until they are flushed. */
export class UsageBatch {
  /** By minute, key, team, user and model, so that memory does not grow with the number of requests. */
  readonly #increments = new Map<string, UsageIncrement>();
  /** By response. */
  readonly #owned = new Map<string, ResponseUsage>();
  readonly #creates = new Map<string, ResponseUsage>();
  readonly #reads = new Map<string, ResponseUsage>();
  /** By subject: each is settled once. */
  readonly #settled = new Map<SubjectId, SettledAdmission>();
  readonly #logsRequests: boolean;
  /** Rows of the log for which there was no room. */
  readonly #dropped: { requests: number };
  readonly #rows: RequestRow[] = [];
  readonly #amendments: RequestAmendment[] = [];

  /** @param logsRequests whether requests are also logged one by one. @param dropped is added to */
  constructor(logsRequests = false, dropped = { requests: 0 }) {
    this.#logsRequests = logsRequests;
    this.#dropped = dropped;
  }

  /** @returns false if the event reads a response that the batch has a read of already, of the same key */
  add(event: UsageEvent): boolean {
    const { keyId, teamId, userId, closedAt, requestCount = 1, responseId, admission, request, amends } = event;
    for (const id of admission?.subjects ?? [])
      if (admission !== undefined && !this.#settled.has(id)) this.#settled.set(id, { ...admission, subjects: [id] });
    if (event.owned !== undefined || event.created !== undefined) this.#noteIds(event);
    // It only tells whose an id is.
    if (requestCount === 0 && chargedTokens(event) === 0) return true;
    const named = event.model && cleanText(event.model, maxModelLength);
    const model = this.#increments.size >= maxModels && named !== undefined ? otherModels : named;
    const minute = minuteOf(closedAt);
    const isFull = this.#reads.size >= maxResponses;
    const hasRoom = responseId !== undefined && (!isFull || this.#reads.has(responseRef(keyId, responseId)));
    const readId = hasRoom ? responseId : undefined;
    const own = { keyId, teamId, userId, model, minute, requestCount, lastClosedAt: closedAt };
    addIncrement(this.#increments, createIncrement(readId === undefined ? event : noUsage, own));
    const isNew = readId === undefined || this.#addRead({ ...event, model }, readId);
    // The tokens of a read are known once it is counted; a further one of the same response adds none.
    const logged = isNew ? event : { ...event, ...noUsage };
    const countedAs = isNew ? (readId ?? null) : null;
    if (request !== undefined) this.addRequest(request, closedAt, logged, countedAs);
    else if (amends !== undefined)
      this.#amend({ requestId: amends, keyId, responseId: countedAs, ...pickUsage(logged) });
    return isNew;
  }

  /** Adds a request to the log. @param usage undefined if it does not count */
  addRequest(request: RequestRecord, endedAt: number, usage?: CountedUsage, responseId: string | null = null): void {
    if (!this.#logsRequests) return;
    if (this.#rows.length < maxRequests) this.#rows.push({ values: requestRowOf(request, endedAt, usage), responseId });
    else this.#dropped.requests++;
  }

  /** Corrects the row of a request that counted before. */
  amendRequest({ requestId, keyId, writtenMs = 0, durationMs, receivedBytes }: RequestRecord): void {
    const [writtenUs, durationUs] = [Math.round(writtenMs * 1000), Math.round(durationMs * 1000)];
    const end = { writtenUs, durationUs, responseBytes: receivedBytes };
    if (keyId !== undefined) this.#amend({ requestId, keyId, responseId: null, ...noUsage, end });
  }

  isEmpty(): boolean {
    const counts = this.#increments.size + this.#owned.size + this.#creates.size + this.#reads.size;
    return counts + this.#rows.length + this.#amendments.length === 0;
  }

  usage(): FlushedUsage {
    return {
      increments: [...this.#increments.values()],
      responses: [...this.#owned.values(), ...this.#creates.values(), ...this.#reads.values()],
      settled: [...this.#settled.values()],
      ...(this.#logsRequests && { requests: { rows: this.#rows, amendments: this.#amendments } }),
    };
  }

  #amend(amendment: RequestAmendment): void {
    if (this.#logsRequests && this.#amendments.length < maxRequests) this.#amendments.push(amendment);
  }

  #addRead(event: UsageEvent, responseId: string): boolean {
    const { keyId, teamId, userId, closedAt, model, inputTokens, outputTokens } = event;
    const ref = responseRef(keyId, responseId);
    const read = this.#reads.get(ref);
    if (read === undefined) {
      this.#reads.set(ref, { responseId, keyId, teamId, userId, closedAt, model, ...pickUsage(event) });
      return true;
    }
    read.inputTokens = Math.max(read.inputTokens, inputTokens);
    read.outputTokens = Math.max(read.outputTokens, outputTokens);
    return false;
  }

  /** Notes what a key has, and what its create has reported so far. */
  #noteIds({ keyId, closedAt, owned, created }: UsageEvent): void {
    if (this.#owned.size + this.#creates.size >= maxResponses) return;
    for (const id of owned?.ids ?? []) {
      const noted = { ...noUsage, responseId: id, keyId, closedAt, as: "owned", backend: owned?.backend } as const;
      // The first that has it keeps it.
      if ((this.#owned.get(id)?.keyId ?? keyId) === keyId) this.#owned.set(id, noted);
    }
    if (created === undefined) return;
    const { inputTokens, outputTokens } = created.reported;
    const create = { responseId: created.id, keyId, closedAt, as: "created", inputTokens, outputTokens } as const;
    this.#creates.set(responseRef(keyId, created.id), create);
  }
}

/**
 * Adds usage up by minute, key, team, user and model.
 * @param apart what else is not to be added to each other. @returns the sum that it is in now
 */
function addIncrement(sums: Map<string, UsageIncrement>, added: UsageIncrement, apart = ""): UsageIncrement {
  const { minute, keyId, teamId = 0, userId = 0, model = "" } = added;
  const id = `${minute}:${keyId}:${teamId}:${userId}:${apart}:${model}`;
  const sum = sums.get(id);
  if (sum === undefined) {
    sums.set(id, added);
    return added;
  }
  sum.requestCount += added.requestCount;
  addUsageTo(sum, added);
  sum.lastClosedAt = Math.max(sum.lastClosedAt, added.lastClosedAt);
  return sum;
}

/** A flush as it waits for the tables of counts. */
export interface StagedFlush extends Required<Omit<FlushedUsage, "responses">> {
  /** The subjects whose limits it counted against when it was staged, in their sums of days too; `true`: all of its own. */
  isSettled?: true | readonly SubjectId[];
}

/** Those that it counts for of these. */
export function amongSubjects(ids: readonly SubjectId[]): typeof subjectsOf {
  const among = new Set(ids);
  return (one) => subjectsOf(one).filter((id) => among.has(id));
}

/** As one, in which usage of the same key, model and so on is added up: it has a row for each of six tables. */
export function mergeStaged(flushes: readonly StagedFlush[]): {
  flush: FlushedUsage;
  missingInDays: typeof subjectsOf;
} {
  const sums = new Map<string, UsageIncrement>();
  const missing = new Map<CountedFor, SubjectId[]>();
  for (const { increments, isSettled = [] } of flushes) {
    for (const one of increments) {
      const ids = isSettled === true ? [] : subjectsOf(one).filter((id) => !isSettled.includes(id));
      missing.set(addIncrement(sums, one, ids.join(" ")), ids);
    }
  }
  const requests = {
    rows: flushes.flatMap((flush) => flush.requests.rows),
    amendments: flushes.flatMap((flush) => flush.requests.amendments),
  };
  const settled = flushes.flatMap((flush) => flush.settled);
  return {
    flush: { increments: [...sums.values()], responses: [], requests, settled },
    missingInDays: (one) => missing.get(one) ?? subjectsOf(one),
  };
}

/** Counts tokens of a response, and no request. */
export const incrementOf = (response: ResponseUsage, tokens: CountedUsage): UsageIncrement => {
  const { keyId, teamId, userId, closedAt, model } = response;
  const counted = { keyId, teamId, userId, model, requestCount: 0 };
  return createIncrement(tokens, { ...counted, minute: minuteOf(closedAt), lastClosedAt: closedAt });
};

/** A part for each key that has counts, with its rows of the log, after what belongs to none of these keys. */
export function partsByKey({ increments, responses, requests, settled }: FlushedUsage): FlushedUsage[] {
  const keys = new Set([...increments, ...responses].map(({ keyId }) => keyId));
  const group = <Row>(rows: readonly Row[], keyOf: (row: Row) => unknown): Map<KeyId | undefined, Row[]> =>
    Map.groupBy(rows, (row) => {
      const key = keyOf(row) as KeyId;
      return keys.has(key) ? key : undefined;
    });
  const own = {
    increments: group(increments, ({ keyId }) => keyId),
    responses: group(responses, ({ keyId }) => keyId),
    rows: group(requests?.rows ?? [], keyIdOf),
    amendments: group(requests?.amendments ?? [], ({ keyId }) => keyId),
  };
  return [undefined, ...keys].map((key) => ({
    increments: own.increments.get(key) ?? [],
    responses: own.responses.get(key) ?? [],
    requests: { rows: own.rows.get(key) ?? [], amendments: own.amendments.get(key) ?? [] },
    // Those of its team too; what has no tokens here charges nothing.
    settled: key === undefined ? [] : settled,
  }));
}

/** Counts of one key that the database refused, and how many rows of the request log went with them. */
export interface RefusedUsage {
  reason: string;
  increments: readonly UsageIncrement[];
  rows: number;
}

export function refusedOf({ increments, responses, requests }: FlushedUsage, reason: string): RefusedUsage {
  const reads = responses.filter(({ as }) => as === undefined);
  return {
    reason,
    increments: [...increments, ...reads.map((read) => incrementOf(read, read))],
    rows: requests?.rows.length ?? 0,
  };
}

/** With all numbers, so that an operator can add them. */
export function logRefused(log: Log, refused: readonly RefusedUsage[]): void {
  for (const { reason, increments } of refused) {
    for (const increment of increments)
      log.error("Database refuses usage; it is not counted", { reason, ...increment });
  }
}
