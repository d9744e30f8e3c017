import type { WallClock } from "../../time/clock.ts";
import type { FinishDetails, RequestTracker } from "../request-tracker.ts";
import { AbortReason } from "../upstream/abort-reason.ts";
import { type BodyHeaders, isPlain } from "../usage/body-kind.ts";
import type { EventFilter } from "../stream/filter.ts";
import { type LateFailure, Progress } from "../stream/flags.ts";
import { createPassage, type Passage, readWholeUsage } from "../stream/passage.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Admission, Reservation } from "../../domain/admissions.ts";
import type { RequestRecord } from "../../domain/requests.ts";
import { addUsage, type Charge, countUsage, noUsage, subtractUsage, type Usage } from "../../domain/usage.ts";
import type { UsageEvent } from "../../domain/usage-event.ts";
import { canonical, getEndpoint } from "../rewrite/endpoint.ts";
import { cacheRuleOf, chargeEvent, createResponseCharge, isOutputReported, mayGenerate } from "./charge.ts";

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
  tracker: Pick<RequestTracker, "requestId" | "model" | "streamed" | "describe" | "written" | "firstByte">;
  /** The id of the response that is asked for; undefined for other requests. */
  readId: string | undefined;
  /** The id of the response that a create has made, once it is known; undefined for other requests. */
  created: (() => string | undefined) | undefined;
  /** Ends with the count; undefined for a key without limits. */
  admission: Admission | undefined;
  /** See `Backend`. */
  cachedInInput?: boolean | undefined;
  /** Undefined for a key without limits of tokens, whose responses are read for nothing but their counts. */
  reservation: Reservation | undefined;
}

export type Count = ReturnType<typeof createCount>;

/** The count of one response: what of it is read, and what of that is committed. */
export function createCount(counted: CountedResponse, { record, wall }: CountDeps) {
  const { upstream, keyId, method, path, tracker, created, admission, reservation } = counted;
  const rule = countingRuleOf(method, path);
  const readId = rule === "read" ? counted.readId : undefined;
  const { turns, streamOptions } = getEndpoint(path);
  const isCreate = method === "POST" && (turns !== undefined || streamOptions);
  const progress = isCreate && upstream.response.ok ? new Progress(tracker.firstByte) : undefined;
  // What is compressed may be more than we can read, and what we made a stream of was none.
  const isStream = tracker.streamed && isPlain({ contentEncoding: upstream.response.headers.get("content-encoding") });
  const isCacheApart = cacheRuleOf(path, counted.cachedInInput);
  let committed: Usage | undefined;
  const charge =
    reservation && createResponseCharge({ reservation, method, path, response: upstream.response, isCacheApart });
  const listener = { ...charge?.output, progress };

  /** @param reported all that the response has reported, with `usage` @param request undefined: it was counted before */
  async function recordEvent(usage: Usage, reported: Usage, more?: Charge, request?: RequestRecord): Promise<void> {
    const isFirst = request !== undefined;
    const id = created?.();
    const event: UsageEvent = {
      ...countUsage(usage, isCacheApart(usage)),
      ...more,
      keyId,
      closedAt: wall(),
      requestCount: isFirst ? 1 : 0,
      // Without tokens there is nothing to look up: clients ask again and again until there are some.
      responseId: usage.inputTokens + usage.outputTokens > 0 ? readId : undefined,
      created: id === undefined ? undefined : { id, reported },
      model: tracker.model?.name,
      request,
      amends: isFirst ? undefined : tracker.requestId,
    };
    if (admission !== undefined) event.admission = admission.handOver();
    const added = await record(event);
    count.added = count.added === undefined ? added : addUsage(count.added, added);
  }

  const count = {
    isCommitted: false,
    /** Of a stream whose first byte is its first content. */
    progress: isStream ? progress : undefined,
    /** How it failed although its status says success, once it is found. */
    failure: undefined as LateFailure | undefined,
    /** Cached input is reported beside the input, and not as part of it. */
    isCacheApart,
    /** Charged by an estimate; undefined for a key without limits of tokens. */
    estimatedTokens: charge?.estimatedTokens,
    /** The tokens that it added to the counts; undefined if it is not committed. */
    added: undefined as Usage | undefined,
    /** What the usage looks like that has passed; undefined before there is a passage. */
    shape: undefined as Passage["shape"] | undefined,
    createPassage(headers: BodyHeaders, filter: EventFilter | undefined): Passage {
      const passage = createPassage(headers, {
        listener: rule === "none" ? undefined : listener,
        filter,
      });
      count.shape = passage.shape;
      return passage;
    },
    readWhole: async (body: Uint8Array, headers: BodyHeaders) =>
      rule === "none" ? noUsage : readWholeUsage(body, headers, listener),
    /** Finds how it failed, unless it has counted. @param isWhole it has come to its end */
    fail(usage: Usage, isWhole: boolean): AbortReason | undefined {
      if (progress === undefined || committed !== undefined) return undefined;
      const isEmpty = isWhole && isStream && !progress.hasContent && usage.inputTokens + usage.outputTokens === 0;
      count.failure ??= progress.failure ?? (isEmpty ? emptyStream : undefined);
      return count.failure && new AbortReason("upstream_failed", "error_in_response", count.failure.cause);
    },
    /** Commits a counted response, and later what came on top. Nothing for a status other than 2xx. */
    async commit(usage: Usage, reason?: AbortReason): Promise<void> {
      const before = committed;
      // Its end charges for it.
      if (!upstream.response.ok || count.fail(usage, reason === undefined) !== undefined) return;
      committed = usage;
      count.isCommitted = true;
      const more = charge?.owed(usage, reason === undefined);
      if (before === undefined) {
        tracker.written = tracker.describe(reason?.outcome ?? "completed", detailsOf(counted, count, usage, reason));
        return recordEvent(usage, usage, more, tracker.written);
      }
      if (usage.inputTokens === before.inputTokens && usage.outputTokens === before.outputTokens) return;
      await recordEvent(readId === undefined ? subtractUsage(usage, before) : usage, usage, more);
    },
    /** Charges the limits of tokens for what a response cost that does not count, by an estimate. */
    async charge(usage: Usage): Promise<void> {
      const isFailed = count.failure !== undefined;
      const id = isFailed ? created?.() : undefined;
      if (!upstream.response.ok || (charge ?? id) === undefined) return;
      const estimatedTokens = charge?.owedUncounted(usage, isFailed) ?? 0;
      const event = chargeEvent({ keyId, closedAt: wall() }, { estimatedTokens, admission });
      // Who reads it later is shown the same tokens.
      await record({ ...event, created: id === undefined ? undefined : { id, reported: usage } });
    },
  };
  return count;
}

const emptyStream: LateFailure = { cause: "empty_stream", isSign: true };

type EndedResponse = Pick<CountedResponse, "method" | "path" | "reservation" | "tracker">;

/** What log and metrics get of the end of a response. @param reason undefined if it is whole */
export function detailsOf(
  { tracker, method, path, reservation }: EndedResponse,
  { estimatedTokens, shape, added, isCacheApart, failure }: Count,
  usage: Usage,
  reason: AbortReason | undefined,
): FinishDetails {
  const isCut = reason !== undefined && tracker.streamed && mayGenerate(method, path);
  const isUncounted = isCut && reservation === undefined && !isOutputReported(usage, shape?.());
  const counted = countUsage(added ?? usage, isCacheApart(usage));
  return {
    code: reason?.code,
    cause: reason?.cause,
    message: failure?.message,
    usage: counted,
    estimatedTokens: estimatedTokens?.() ?? 0,
    isUncounted,
  };
}

/** Which tokens of a response count. The request itself always does. */
export type CountingRule = "all" | "read" | "none";

/**
 * Tokens are counted where they are spent: in responses to POST. Backends report those of a stored response again whenever
 * it is retrieved or cancelled, and those of a batch in files and in the batch itself. A read counts what no create has
 * reported.
 * @param path the URL's pathname
 */
export function countingRuleOf(method: string, path: string): CountingRule {
  const { folder } = getEndpoint(path);
  const response = folder === "responses" ? canonical(path).slice("/v1/responses/".length) : "";
  if (response !== "" && (method === "GET" || (method === "POST" && /^[^/]+\/cancel$/.test(response)))) return "read";
  return method === "POST" && folder !== "files" && folder !== "batches" ? "all" : "none";
}
