import { type Admission, type KeyId, noUsage, type Usage, type UsageEvent } from "../../domain.ts";
import type { WallClock } from "../../time/clock.ts";
import { countingRuleOf } from "../usage/counting-rule.ts";
import {
  type BodyHeaders,
  createUsageReader,
  noUsageReader,
  readWholeUsage,
  type UsageReader,
} from "../usage/response-usage.ts";

/** Commits one usage event; the client sees no end of the response before. Never rejects. @returns the tokens that it added */
export type RecordUsage = (event: UsageEvent) => Promise<Usage>;

export interface CountDeps {
  record: RecordUsage;
  wall: WallClock;
}

interface CountedResponse {
  upstream: { response: Response };
  keyId: KeyId;
  method: string;
  path: string;
  /** Ends with the count; undefined for a key without limits. */
  admission: Admission | undefined;
}

/** The count of one response: what of it is read, and what of that is committed. */
export interface Count {
  createReader(headers: BodyHeaders): UsageReader;
  readWhole(body: Uint8Array, headers: BodyHeaders): Promise<Usage>;
  isCommitted(): boolean;
  /** Commits a counted response, and later what came on top. Nothing for a status other than 2xx. */
  commit(usage: Usage): Promise<void>;
  /** The tokens that it added to the counts; undefined if it is not committed. */
  added(): Usage | undefined;
}

export function createCount(
  { upstream, keyId, method, path, admission }: CountedResponse,
  { record, wall }: CountDeps,
): Count {
  const rule = countingRuleOf(method, path);
  let responseId: string | undefined;
  let committed: Usage | undefined;
  let added: Usage | undefined;
  const onResponseId = (id: string | undefined): void => {
    if (rule === "once per response id" && committed === undefined) responseId ??= id;
  };

  async function recordEvent(usage: Usage, requestCount: 0 | 1): Promise<void> {
    const { inputTokens, outputTokens } = usage;
    const event: UsageEvent = { keyId, closedAt: wall(), inputTokens, outputTokens, requestCount, responseId };
    if (admission !== undefined) event.admission = admission.handOver();
    added = sumOf(added ?? noUsage, await record(event));
  }

  return {
    createReader: (headers) => (rule === "none" ? noUsageReader : createUsageReader(headers, onResponseId)),
    readWhole: async (body, headers) => (rule === "none" ? noUsage : readWholeUsage(body, headers, onResponseId)),
    isCommitted: () => committed !== undefined,
    async commit(usage) {
      const before = committed;
      if (!upstream.response.ok) return;
      committed = usage;
      // A response that is retrieved counts only if it is known which one it is.
      const isUnknown = method === "GET" && responseId === undefined;
      if (before === undefined) return recordEvent(isUnknown ? noUsage : usage, 1);
      const more = differenceOf(usage, before);
      if (isUnknown || (more.inputTokens === 0 && more.outputTokens === 0)) return;
      await recordEvent(responseId === undefined ? more : usage, 0);
    },
    added: () => added,
  };
}

const sumOf = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
});

const differenceOf = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens - b.inputTokens,
  outputTokens: a.outputTokens - b.outputTokens,
});
