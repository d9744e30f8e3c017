import { minuteOf } from "../../time/seoul.ts";
import type { RequestRow } from "../requests/contract.ts";
import { cleanText, keyIdOf, maxModelLength, microseconds, requestRowOf } from "../requests/row.ts";
import type { FlushedRequests, RequestAmendment } from "../requests/contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { SettledAdmission } from "../../domain/admissions.ts";
import type { RequestRecord } from "../../domain/requests.ts";
import {
  addUsageTo,
  chargedTokens,
  type CountedUsage,
  createIncrement,
  noUsage,
  pickUsage,
  type ResponseUsage,
  type UsageIncrement,
  responseRef,
} from "../../domain/usage.ts";
import type { UsageEvent, ReportedCreate } from "../../domain/usage-event.ts";

/** What one flush writes. */
export interface FlushedUsage {
  increments: readonly UsageIncrement[];
  responses: readonly ResponseUsage[];
  requests?: FlushedRequests;
  /** The keys whose limits its tokens count against. */
  settled: readonly SettledAdmission[];
}

/** Adds usage events up until they are flushed. */
export interface UsageBatch {
  /** @returns false if the event reads a response that the batch has a read of already, of the same key */
  add(event: UsageEvent): boolean;
  /** Keeps the object, and may change it. */
  addIncrement(increment: UsageIncrement): void;
  /** Adds a request that does not count to the log. */
  addRequest(request: RequestRecord, endedAt: number): void;
  /** Corrects the row of a request that counted before. */
  amendRequest(request: RequestRecord): void;
  isEmpty(): boolean;
  usage(): FlushedUsage;
}

/** Bounds the memory of a long outage. Further ones count whether or not they did before, and have no creator. */
const maxResponses = 100_000;
/** Rows of the log that wait in memory; further ones are lost, while their counts are not. */
const maxRequests = 10_000;
/** The sums of further models wait under one name: clients choose the names. */
const maxModels = 5000;
export const otherModels = "other";

/**
 * @param logsRequests whether requests are also logged one by one
 * @param dropped is added to
 */
export function createUsageBatch(logsRequests = false, dropped: Dropped = { requests: 0 }): UsageBatch {
  /** By minute, key and model, so that memory does not grow with the number of requests. */
  const increments = new Map<string, UsageIncrement>();
  /** By response. */
  const creates = new Map<string, ResponseUsage>();
  const reads = new Map<string, ResponseUsage>();
  const log: LogRows = { rows: [], amendments: [], dropped };
  /** By key: each is settled once. */
  const settled = new Map<KeyId, SettledAdmission>();

  function addIncrement(added: UsageIncrement): void {
    const id = `${added.minute}:${added.keyId}:${added.model ?? ""}`;
    const increment = increments.get(id);
    if (increment === undefined) increments.set(id, added);
    else addTo(increment, added);
  }

  function addCreate(event: UsageEvent, create: ReportedCreate): void {
    const ref = responseRef(event.keyId, create.id);
    const known = creates.get(ref);
    if (known === undefined && creates.size >= maxResponses) return;
    creates.set(ref, createOf(event, create, known));
  }

  function addRead(event: UsageEvent, responseId: string): boolean {
    const { keyId, closedAt, model, inputTokens, outputTokens } = event;
    const read = reads.get(responseRef(keyId, responseId));
    if (read === undefined) {
      reads.set(responseRef(keyId, responseId), { responseId, keyId, closedAt, model, ...pickUsage(event) });
      return true;
    }
    read.inputTokens = Math.max(read.inputTokens, inputTokens);
    read.outputTokens = Math.max(read.outputTokens, outputTokens);
    return false;
  }

  return {
    add(event) {
      const { keyId, closedAt, requestCount = 1, responseId, created, admission } = event;
      if (admission !== undefined && !settled.has(admission.keyId)) settled.set(admission.keyId, admission);
      if (created !== undefined) addCreate(event, created);
      // It only tells of a create.
      if (requestCount === 0 && chargedTokens(event) === 0) return true;
      const named = event.model && cleanText(event.model, maxModelLength);
      const model = increments.size >= maxModels && named !== undefined ? otherModels : named;
      const minute = minuteOf(closedAt);
      const isPlain =
        responseId === undefined || (reads.size >= maxResponses && !reads.has(responseRef(keyId, responseId)));
      if (isPlain) {
        addIncrement(createIncrement(event, { keyId, model, minute, requestCount, lastClosedAt: closedAt }));
        if (logsRequests) logEvent(log, event, null);
        return true;
      }
      addIncrement({ keyId, model, minute, requestCount, inputTokens: 0, outputTokens: 0, lastClosedAt: closedAt });
      const isFirst = addRead({ ...event, model }, responseId);
      if (logsRequests) logEvent(log, isFirst ? event : { ...event, ...noUsage }, isFirst ? responseId : null);
      return isFirst;
    },
    addIncrement,
    addRequest(request, endedAt) {
      if (logsRequests) addRow(log, request, { endedAt, usage: undefined, responseId: null });
    },
    amendRequest(request) {
      if (logsRequests) logEnd(log, request);
    },
    isEmpty: () => increments.size + creates.size + reads.size === 0 && log.rows.length + log.amendments.length === 0,
    usage: () => ({
      increments: [...increments.values()],
      responses: [...creates.values(), ...reads.values()],
      settled: [...settled.values()],
      ...(logsRequests && { requests: { rows: log.rows, amendments: log.amendments } }),
    }),
  };
}

/** @param known what the batch has of it already */
function createOf(
  { keyId, closedAt, estimatedTokens = 0 }: UsageEvent,
  { id, isNew, madeAt, backend, reported: { inputTokens, outputTokens } }: ReportedCreate,
  known: ResponseUsage | undefined,
): ResponseUsage {
  const before = known?.created;
  const created = {
    count: (before?.count ?? 0) + (isNew ? 1 : 0),
    madeAt: madeAt ?? before?.madeAt,
    ...(backend !== undefined && { backend }),
  };
  const estimated = (known?.estimatedTokens ?? 0) + estimatedTokens;
  const create: ResponseUsage = { responseId: id, keyId, closedAt, inputTokens, outputTokens, created };
  return estimated === 0 ? create : { ...create, estimatedTokens: estimated };
}

/** How many rows of the log were dropped because a batch is full. */
export interface Dropped {
  requests: number;
}

/** What a flush adds to the request log. */
interface LogRows {
  rows: RequestRow[];
  amendments: RequestAmendment[];
  dropped: Dropped;
}

/** @param responseId set if the tokens are known only once they are counted */
function logEvent(log: LogRows, event: UsageEvent, responseId: string | null): void {
  const { request, closedAt, amends: requestId, keyId } = event;
  if (request !== undefined) addRow(log, request, { endedAt: closedAt, usage: event, responseId });
  else if (requestId !== undefined) amend(log, { requestId, keyId, responseId, ...pickUsage(event) });
}

function logEnd(log: LogRows, { requestId, keyId, writtenMs = 0, durationMs, receivedBytes }: RequestRecord): void {
  const [writtenUs, durationUs] = [microseconds(writtenMs), microseconds(durationMs)];
  const end = { writtenUs, durationUs, responseBytes: receivedBytes };
  if (keyId !== undefined) amend(log, { requestId, keyId, responseId: null, ...noUsage, end });
}

interface EndedRequest {
  endedAt: number;
  /** Undefined if it does not count. */
  usage: CountedUsage | undefined;
  responseId: string | null;
}

function addRow(log: LogRows, request: RequestRecord, { endedAt, usage, responseId }: EndedRequest): void {
  if (log.rows.length < maxRequests) log.rows.push({ values: requestRowOf(request, endedAt, usage), responseId });
  else log.dropped.requests++;
}

function amend({ amendments }: LogRows, amendment: RequestAmendment): void {
  if (amendments.length < maxRequests) amendments.push(amendment);
}

/** Changes `increment`, which is of the same key, minute and model. */
export function addTo(increment: UsageIncrement, added: UsageIncrement): void {
  increment.requestCount += added.requestCount;
  addUsageTo(increment, added);
  increment.lastClosedAt = Math.max(increment.lastClosedAt, added.lastClosedAt);
}

/** Counts tokens of a response, and no request. */
export const incrementOf = ({ keyId, closedAt, model }: ResponseUsage, tokens: CountedUsage): UsageIncrement =>
  createIncrement(tokens, { keyId, model, minute: minuteOf(closedAt), requestCount: 0, lastClosedAt: closedAt });

const rowCount = ({ increments, responses }: FlushedUsage): number => increments.length + responses.length;

const loggedCount = ({ requests }: FlushedUsage): number =>
  requests === undefined ? 0 : requests.rows.length + requests.amendments.length;

/** @returns two parts of about the same size; undefined if there is only one count. The log's rows go with their keys. */
export function halvesOf(usage: FlushedUsage): [FlushedUsage, FlushedUsage] | undefined {
  const { increments, responses, requests, settled } = usage;
  // What the database refuses is the usage. The places must be given back all the same.
  if (rowCount(usage) === 1 && settled.length > 0) {
    return [
      { increments, responses, settled: [], ...(requests && { requests }) },
      { increments: [], responses: [], settled },
    ];
  }
  if (rowCount(usage) < 2) return undefined;
  const [half, rest] = [Math.ceil(increments.length / 2), Math.floor(responses.length / 2)];
  const first = increments.slice(0, half);
  const keys = new Set(first.map(({ keyId }) => keyId));
  return [
    { increments: first, responses: responses.slice(0, rest), settled: [], ...requestsOf(usage, keys, true) },
    {
      increments: increments.slice(half),
      responses: responses.slice(rest),
      settled,
      ...requestsOf(usage, keys, false),
    },
  ];
}

/** The part of the request log that belongs to one of the keys, or to none of them. */
function requestsOf(
  { requests }: FlushedUsage,
  keys: ReadonlySet<KeyId>,
  isOne: boolean,
): Pick<FlushedUsage, "requests"> {
  if (requests === undefined) return {};
  const isSelected = (keyId: unknown): boolean => keys.has(keyId as KeyId) === isOne;
  return {
    requests: {
      rows: requests.rows.filter((row) => isSelected(keyIdOf(row))),
      amendments: requests.amendments.filter(({ keyId }) => isSelected(keyId)),
    },
  };
}

/** Splits off the usage of some keys. @returns that of all others, and theirs; parts without rows are left out */
export function partsByKeys(usage: FlushedUsage, keys: ReadonlySet<KeyId>): FlushedUsage[] {
  if (keys.size === 0) return [usage];
  const select = (isOne: boolean): FlushedUsage => ({
    increments: usage.increments.filter(({ keyId }) => keys.has(keyId) === isOne),
    responses: usage.responses.filter(({ keyId }) => keys.has(keyId) === isOne),
    ...requestsOf(usage, keys, isOne),
    settled: usage.settled.filter(({ keyId }) => keys.has(keyId) === isOne),
  });
  return [select(false), select(true)].filter((part) => rowCount(part) + loggedCount(part) > 0);
}
