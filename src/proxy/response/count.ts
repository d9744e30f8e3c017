import { type KeyId } from "../../domain/keys.ts";
import { type Usage } from "../../domain/usage.ts";
import { type Admission } from "../../domain/admissions.ts";
import { type UsageEvent } from "../../domain/usage-event.ts";
import { noUsage } from "../../domain/usage.ts";
import { type RequestRecord } from "../../domain/requests.ts";
import type { WallClock } from "../../time/clock.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";
import { countingRuleOf, countsCacheBesideInput } from "../usage/counting-rule.ts";
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

/** What the ledger stores in addition to the counts. */
export interface DescribedRequest {
  requestId: string;
  model: string | undefined;
  describe: (usage: Usage, reason: AbortReason | undefined) => RequestRecord;
}

interface CountedResponse {
  upstream: { response: Response };
  keyId: KeyId;
  method: string;
  path: string;
  described: DescribedRequest;
  /** Ends with the count; undefined for a key without limits. */
  admission: Admission | undefined;
}

/** The count of one response: what of it is read, and what of that is committed. */
export interface Count {
  createReader(headers: BodyHeaders): UsageReader;
  readWhole(body: Uint8Array, headers: BodyHeaders): Promise<Usage>;
  isCommitted(): boolean;
  /** Commits a counted response, and later what came on top. Nothing for a status other than 2xx. */
  commit(usage: Usage, reason?: AbortReason): Promise<void>;
  /** The tokens that it added to the counts; undefined if it is not committed. */
  added(): Usage | undefined;
}

export function createCount(
  { upstream, keyId, method, path, described, admission }: CountedResponse,
  { record, wall }: CountDeps,
): Count {
  const rule = countingRuleOf(method, path);
  const countsCacheApart = countsCacheBesideInput(path);
  let responseId: string | undefined;
  let committed: Usage | undefined;
  let added: Usage | undefined;
  const onResponseId = (id: string | undefined): void => {
    if (rule === "once per response id" && committed === undefined) responseId ??= id;
  };

  async function recordEvent(usage: Usage, request: RequestRecord | undefined): Promise<void> {
    const { requestId, model } = described;
    const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = usage;
    const isFirst = request !== undefined;
    const event: UsageEvent = {
      keyId,
      closedAt: wall(),
      inputTokens,
      outputTokens,
      cachedInputTokens,
      reasoningTokens,
      cachedBesideInputTokens: countsCacheApart ? cachedInputTokens : undefined,
      requestCount: isFirst ? 1 : 0,
      responseId,
      model,
      request,
      amends: isFirst ? undefined : requestId,
    };
    if (admission !== undefined) event.admission = admission.handOver();
    added = sumOf(added ?? noUsage, await record(event));
  }

  return {
    createReader: (headers) => (rule === "none" ? noUsageReader : createUsageReader(headers, onResponseId)),
    readWhole: async (body, headers) => (rule === "none" ? noUsage : readWholeUsage(body, headers, onResponseId)),
    isCommitted: () => committed !== undefined,
    async commit(usage, reason) {
      const before = committed;
      if (!upstream.response.ok) return;
      committed = usage;
      // A response that is retrieved counts only if it is known which one it is.
      const isUnknown = method === "GET" && responseId === undefined;
      if (before === undefined) return recordEvent(isUnknown ? noUsage : usage, described.describe(usage, reason));
      const more = differenceOf(usage, before);
      if (isUnknown || (more.inputTokens === 0 && more.outputTokens === 0)) return;
      await recordEvent(responseId === undefined ? more : usage, undefined);
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
  cachedInputTokens: (a.cachedInputTokens ?? 0) - (b.cachedInputTokens ?? 0),
  reasoningTokens: (a.reasoningTokens ?? 0) - (b.reasoningTokens ?? 0),
});
