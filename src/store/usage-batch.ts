import type { AdmissionId, KeyId, Usage, UsageEvent } from "../domain.ts";
import { minuteOf } from "../time/seoul.ts";
import type { ResponseUsage, UsageIncrement, UsageSum } from "./store.ts";

/** What one flush writes. */
export interface FlushedUsage {
  increments: readonly UsageIncrement[];
  responses: readonly ResponseUsage[];
  /** The admissions that end with it. */
  settled: readonly AdmissionId[];
}

/** Adds usage events up until they are flushed. */
export interface UsageBatch {
  /** @returns false if the event has the id of a response that the batch holds already */
  add(event: UsageEvent): boolean;
  /** Keeps the object, and may change it. */
  addIncrement(increment: UsageIncrement): void;
  isEmpty(): boolean;
  usage(): FlushedUsage;
}

/** Bounds the memory of a long outage. The tokens of further responses are counted whether or not they were counted before. */
const maxResponses = 100_000;

export function createUsageBatch(): UsageBatch {
  /** By minute and key, so that memory does not grow with the number of requests. */
  const increments = new Map<string, UsageIncrement>();
  /** By response id. */
  const responses = new Map<string, ResponseUsage>();
  const settled: AdmissionId[] = [];

  function addIncrement(added: UsageIncrement): void {
    const id = `${added.minute}:${added.keyId}`;
    const increment = increments.get(id);
    if (increment === undefined) increments.set(id, added);
    else addTo(increment, added);
  }

  function addResponse({ keyId, closedAt, inputTokens, outputTokens }: UsageEvent, responseId: string): boolean {
    const response = responses.get(responseId);
    if (response === undefined) {
      responses.set(responseId, { responseId, keyId, closedAt, inputTokens, outputTokens });
      return true;
    }
    response.inputTokens = Math.max(response.inputTokens, inputTokens);
    response.outputTokens = Math.max(response.outputTokens, outputTokens);
    return false;
  }

  return {
    add(event) {
      const { keyId, closedAt, requestCount = 1, inputTokens, outputTokens, responseId, admission } = event;
      if (admission !== undefined) settled.push(admission);
      const request = { keyId, minute: minuteOf(closedAt), requestCount, lastClosedAt: closedAt };
      const isPlain = responseId === undefined || (responses.size >= maxResponses && !responses.has(responseId));
      if (isPlain) {
        addIncrement({ ...request, inputTokens, outputTokens });
        return true;
      }
      addIncrement({ ...request, inputTokens: 0, outputTokens: 0 });
      return addResponse(event, responseId);
    },
    addIncrement,
    isEmpty: () => increments.size === 0,
    usage: () => ({ increments: [...increments.values()], responses: [...responses.values()], settled }),
  };
}

export const noSum: UsageSum = { requestCount: 0, inputTokens: 0, outputTokens: 0 };

export const addSums = (a: UsageSum, b: UsageSum): UsageSum => ({
  requestCount: a.requestCount + b.requestCount,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
});

/** Changes `increment`, which is of the same key and minute. */
export function addTo(increment: UsageIncrement, added: UsageIncrement): void {
  increment.requestCount += added.requestCount;
  increment.inputTokens += added.inputTokens;
  increment.outputTokens += added.outputTokens;
  increment.lastClosedAt = Math.max(increment.lastClosedAt, added.lastClosedAt);
}

/** Counts tokens of a response, and no request. */
export const incrementOf = ({ keyId, closedAt }: ResponseUsage, tokens: Usage): UsageIncrement => ({
  keyId,
  minute: minuteOf(closedAt),
  requestCount: 0,
  inputTokens: tokens.inputTokens,
  outputTokens: tokens.outputTokens,
  lastClosedAt: closedAt,
});

const rowCount = ({ increments, responses }: FlushedUsage): number => increments.length + responses.length;

/** @returns two parts of about the same size; undefined if there is only one row */
export function halvesOf(usage: FlushedUsage): [FlushedUsage, FlushedUsage] | undefined {
  const { increments, responses, settled } = usage;
  // What the database refuses is the usage. The places must be given back all the same.
  if (rowCount(usage) === 1 && settled.length > 0) {
    return [
      { increments, responses, settled: [] },
      { increments: [], responses: [], settled },
    ];
  }
  if (rowCount(usage) < 2) return undefined;
  const [half, rest] = [Math.ceil(increments.length / 2), Math.floor(responses.length / 2)];
  return [
    { increments: increments.slice(0, half), responses: responses.slice(0, rest), settled: [] },
    { increments: increments.slice(half), responses: responses.slice(rest), settled },
  ];
}

/** Splits off the usage of some keys. @returns that of all others, and theirs; parts without rows are left out */
export function partsByKeys(usage: FlushedUsage, keys: ReadonlySet<KeyId>): FlushedUsage[] {
  if (keys.size === 0) return [usage];
  const select = (isOne: boolean): FlushedUsage => ({
    increments: usage.increments.filter(({ keyId }) => keys.has(keyId) === isOne),
    responses: usage.responses.filter(({ keyId }) => keys.has(keyId) === isOne),
    settled: usage.settled.filter(({ keyId }) => keys.has(keyId) === isOne),
  });
  return [select(false), select(true)].filter((part) => rowCount(part) > 0);
}
