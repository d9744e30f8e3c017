import type { WallClock } from "../../time/clock.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";
import { isResponseId } from "../usage/token-counts.ts";
import {
  type BodyHeaders,
  createUsageReader,
  noUsageReader,
  readWholeUsage,
  type UsageReader,
} from "../usage/response-usage.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Admission } from "../../domain/admissions.ts";
import type { RequestRecord } from "../../domain/requests.ts";
import { addUsage, countUsage, noUsage, subtractUsage, type Usage } from "../../domain/usage.ts";
import type { UsageEvent, StoredResponse } from "../../domain/usage-event.ts";
import { canonical, isBelow } from "../rewrite/endpoint.ts";

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
  /** The one that a request under `/v1/responses` asks for by its id; undefined for a create. */
  stored: StoredResponse | undefined;
  /** Ends with the count; undefined for a key without limits. */
  admission: Admission | undefined;
}

/** The count of one response: what of it is read, and what of that is committed. */
export interface Count {
  createReader(headers: BodyHeaders): UsageReader;
  readWhole(body: Uint8Array, headers: BodyHeaders): Promise<Usage>;
  /** Commits a counted response, and later what came on top. Nothing for a status other than 2xx. */
  commit(usage: Usage, reason?: AbortReason): Promise<void>;
  isCommitted: boolean;
  /** The tokens that it added to the counts; undefined if it is not committed. */
  added: Usage | undefined;
}

export function createCount(
  { upstream, keyId, method, path, described, stored, admission }: CountedResponse,
  { record, wall }: CountDeps,
): Count {
  const rule = countingRuleOf(method, path);
  // There, cached input is reported beside the input, and not as part of it.
  const countsCacheApart = isBelow(canonical(path), "/v1/messages");
  const readId = rule === "read" && stored !== undefined && isResponseId(stored.id) ? stored.id : undefined;
  let created: StoredResponse | undefined;
  let isAnnounced = false;
  let committed: Usage | undefined;

  function keep(one: StoredResponse): void {
    created ??= one;
  }

  /** A client knows the id of a stream before its end: from then on the response is its key's own. */
  function announce(one: StoredResponse): void {
    keep(one);
    if (created === undefined || !upstream.response.ok || committed !== undefined) return;
    isAnnounced = true;
    const create = { ...created, isNew: true, reported: noUsage };
    void record({ keyId, closedAt: wall(), ...noUsage, requestCount: 0, created: create });
  }

  /** @param reported with `usage`, all that the response has reported */
  async function recordEvent(usage: Usage, reported: Usage, request: RequestRecord | undefined): Promise<void> {
    const { requestId, model } = described;
    const isFirst = request !== undefined;
    const reportedCreate = created && { ...created, isNew: !isAnnounced, reported };
    isAnnounced = true;
    const event: UsageEvent = {
      ...countUsage(usage, countsCacheApart),
      keyId,
      closedAt: wall(),
      requestCount: isFirst ? 1 : 0,
      // Without tokens there is nothing to look up: clients ask again and again until there are some.
      responseId: usage.inputTokens + usage.outputTokens > 0 ? readId : undefined,
      created: reportedCreate,
      model,
      request,
      amends: isFirst ? undefined : requestId,
    };
    if (admission !== undefined) event.admission = admission.handOver();
    const added = await record(event);
    count.added = addUsage(count.added ?? noUsage, added);
  }

  const count: Count = {
    isCommitted: false,
    added: undefined,
    createReader: (headers) =>
      rule === "none" ? noUsageReader : createUsageReader(headers, rule === "create" ? announce : undefined),
    readWhole: async (body, headers) =>
      rule === "none" ? noUsage : readWholeUsage(body, headers, rule === "create" ? keep : undefined),
    async commit(usage, reason) {
      const before = committed;
      if (!upstream.response.ok) return;
      committed = usage;
      count.isCommitted = true;
      if (before === undefined) return recordEvent(usage, usage, described.describe(usage, reason));
      const more = subtractUsage(usage, before);
      if (more.inputTokens === 0 && more.outputTokens === 0) return;
      await recordEvent(readId === undefined ? more : usage, usage, undefined);
    },
  };
  return count;
}

/** Which tokens of a response count. The request itself always does. */
export type CountingRule = "all" | "create" | "read" | "none";

/**
 * Tokens are counted where they are spent: in responses to POST. Backends report those of a stored response again whenever
 * it is retrieved or cancelled, and those of a batch in files and in the batch itself. Under `/v1/responses` a create counts
 * all that it reports, because clients can choose its id; a read counts what no create has reported.
 * @param path the URL's pathname
 */
export function countingRuleOf(method: string, path: string): CountingRule {
  const plain = canonical(path);
  if (isBelow(plain, "/v1/responses")) {
    if (method === "GET" && plain !== "/v1/responses") return "read";
    if (method !== "POST") return "none";
    return /^\/v1\/responses\/[^/]+\/cancel$/.test(plain) ? "read" : "create";
  }
  return method === "POST" && !isBelow(plain, "/v1/files") && !isBelow(plain, "/v1/batches") ? "all" : "none";
}
