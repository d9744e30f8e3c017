import type { WallClock } from "../../time/clock.ts";
import type { FinishDetails, RequestTracker } from "../request-tracker.ts";
import { AbortReason } from "../upstream/abort-reason.ts";
import { type BodyKind, kindOf, mediaTypeOf } from "../stream/body-kind.ts";
import type { EventFilter } from "../stream/filter.ts";
import { type LateFailure, Progress } from "../stream/flags.ts";
import { Passage, readWholeUsage, type ResponseListener } from "../stream/passage.ts";
import type { UsageShape } from "../stream/usage.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Admission, Reservation } from "../../domain/admissions.ts";
import type { RequestRecord } from "../../domain/requests.ts";
import {
  addUsage,
  type Charge,
  countUsage,
  noUsage,
  subtractUsage,
  type Usage,
  type CountedFor,
  cachedTokensOf,
  chargedTokens,
} from "../../domain/usage.ts";
import type { UsageEvent } from "../../domain/usage-event.ts";
import { canonical, getEndpoint } from "../rewrite/endpoint.ts";
import { nothingSeen, OutputObserver } from "../stream/output.ts";

/** Commits one usage event; the client sees no end of the response before. Never rejects. @returns the tokens that it added */
export type RecordUsage = (event: UsageEvent) => Promise<Usage>;

export interface CountDeps {
  record: RecordUsage;
  wall: WallClock;
}

export interface CountedResponse {
  upstream: { response: Response };
  keyId: KeyId;
  method: string;
  path: string;
  tracker: Pick<RequestTracker, "record" | "describe" | "written" | "firstByte">;
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

/** The count of one response: what of it is read, and what of that is committed. */
export class Count {
  readonly #rule: CountingRule;
  readonly #readId: string | undefined;
  readonly #listener: ResponseListener;
  /** Of a stream whose first byte is its first content. */
  readonly progress: Progress | undefined;
  /** What is compressed may be more than we can read, and what we made a stream of was none. */
  readonly #isStream: boolean;
  readonly #charge: ReturnType<typeof createResponseCharge>;
  #passage: Passage | undefined;
  /** All that it has counted; undefined before it did. */
  committed: Usage | undefined;
  /** How it failed although its status says success, once it is found. */
  failure: LateFailure | undefined;
  /** The tokens that it added to the counts; undefined if it is not committed. */
  added: Usage | undefined;

  constructor(
    readonly counted: CountedResponse,
    readonly deps: CountDeps,
  ) {
    const { method, path, tracker, reservation } = counted;
    const { response } = counted.upstream;
    this.#rule = countingRuleOf(method, path);
    this.#readId = this.#rule === "read" ? counted.readId : undefined;
    const { turns, streamOptions } = getEndpoint(path);
    const isCreate = method === "POST" && (turns !== undefined || streamOptions);
    const progress = isCreate && response.ok ? new Progress(tracker.firstByte) : undefined;
    this.#isStream = tracker.record.streamed && kindOf(null, response.headers.get("content-encoding")).isPlain;
    const isInInput = counted.cachedInInput;
    this.#charge = reservation && createResponseCharge({ reservation, method, path, response, isInInput });
    this.#listener = { observer: this.#charge?.output, progress };
    this.progress = this.#isStream ? progress : undefined;
  }

  /** Charged by an estimate. */
  get estimatedTokens(): number {
    return this.#charge?.total.estimatedTokens ?? 0;
  }

  /** What the usage looks like that has passed; undefined before there is a passage. */
  get shape(): UsageShape | undefined {
    return this.#passage?.shape();
  }

  createPassage(kind: BodyKind, filter: EventFilter | undefined): Passage {
    const listener = this.#rule === "none" ? undefined : this.#listener;
    return (this.#passage = new Passage(kind, { listener, filter }));
  }

  async readWhole(body: Uint8Array, kind: BodyKind): Promise<Usage> {
    return this.#rule === "none" ? noUsage : readWholeUsage(body, kind, this.#listener);
  }

  /** Finds how it failed, unless it has counted. @param isWhole it has come to its end */
  fail(usage: Usage, isWhole: boolean): AbortReason | undefined {
    const { progress } = this.#listener;
    if (progress === undefined || this.committed !== undefined) return undefined;
    const isEmpty = isWhole && this.#isStream && !progress.hasContent && usage.inputTokens + usage.outputTokens === 0;
    this.failure ??= progress.failure ?? (isEmpty ? emptyStream : undefined);
    return this.failure && new AbortReason("upstream_failed", "error_in_response", this.failure.cause);
  }

  /** Commits a counted response, and later what came on top. Nothing for a status other than 2xx. */
  async commit(usage: Usage, reason?: AbortReason): Promise<void> {
    const { upstream, tracker } = this.counted;
    const before = this.committed;
    // Its end charges for it.
    if (!upstream.response.ok || this.fail(usage, reason === undefined) !== undefined) return;
    this.committed = usage;
    const more = this.#charge?.owed(usage, reason === undefined);
    if (before === undefined) {
      tracker.written = tracker.describe(reason?.outcome ?? "completed", this.details(usage, reason));
      return this.#record(usage, usage, more, tracker.written);
    }
    if (usage.inputTokens === before.inputTokens && usage.outputTokens === before.outputTokens) return;
    await this.#record(this.#readId === undefined ? subtractUsage(usage, before) : usage, usage, more);
  }

  /** @param reported all that the response has reported, with `usage` @param request undefined: it was counted before */
  async #record(usage: Usage, reported: Usage, more?: Charge, request?: RequestRecord): Promise<void> {
    const { keyId, path, tracker, created, admission, cachedInInput } = this.counted;
    const isFirst = request !== undefined;
    const id = created?.();
    const event: UsageEvent = {
      ...countUsage(usage, isCacheApart(usage, path, cachedInInput)),
      ...more,
      keyId,
      teamId: tracker.record.teamId,
      userId: tracker.record.userId,
      closedAt: this.deps.wall(),
      requestCount: isFirst ? 1 : 0,
      // Without tokens there is nothing to look up: clients ask again and again until there are some.
      responseId: usage.inputTokens + usage.outputTokens > 0 ? this.#readId : undefined,
      created: id === undefined ? undefined : { id, reported },
      model: tracker.record.model,
      request,
      amends: isFirst ? undefined : tracker.record.requestId,
    };
    if (admission !== undefined) event.admission = admission.handOver();
    const added = await this.deps.record(event);
    this.added = this.added === undefined ? added : addUsage(this.added, added);
  }

  /** Charges the limits of tokens for what a response cost that does not count, by an estimate. */
  async charge(usage: Usage): Promise<void> {
    const { upstream, keyId, tracker, created, admission } = this.counted;
    const isFailed = this.failure !== undefined;
    const id = isFailed ? created?.() : undefined;
    if (!upstream.response.ok || (this.#charge ?? id) === undefined) return;
    const estimatedTokens = this.#charge?.owedUncounted(usage, isFailed) ?? 0;
    const { teamId, userId } = tracker.record;
    const of = { keyId, teamId, userId, closedAt: this.deps.wall() };
    const event = chargeEvent(of, { estimatedTokens, admission });
    // Who reads it later is shown the same tokens.
    await this.deps.record({ ...event, created: id === undefined ? undefined : { id, reported: usage } });
  }

  /** What log and metrics get of the end of a response. @param reason undefined if it is whole */
  details(usage: Usage, reason: AbortReason | undefined): FinishDetails {
    const { tracker, method, path, reservation, cachedInInput } = this.counted;
    const isCut = reason !== undefined && tracker.record.streamed && mayGenerate(method, path);
    return {
      code: reason?.code,
      cause: reason?.cause,
      message: this.failure?.message,
      usage: countUsage(this.added ?? usage, isCacheApart(usage, path, cachedInInput)),
      estimatedTokens: this.estimatedTokens,
      isUncounted: isCut && reservation === undefined && !isOutputReported(usage, this.shape),
    };
  }
}

const emptyStream: LateFailure = { cause: "empty_stream", isSign: true };

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

interface ChargedResponse {
  /** Undefined for a key without limits of tokens. */
  reservation: Reservation;
  method: string;
  path: string;
  response: Response;
  /** See `isCacheApart`. */
  isInInput?: boolean | undefined;
}

/**
 * Whether cached input is reported beside the input, and not as a part of it: by the Messages API.
 * @param isInInput the backend is said to do otherwise there; an answer with more cached than input proves the contrary
 */
export const isCacheApart = (usage: Usage, path: string, isInInput = false): boolean =>
  getEndpoint(path).folder === "messages" && (!isInInput || cachedTokensOf(usage) > usage.inputTokens);

/** @returns undefined if nothing is owed beside the counts */
export function createResponseCharge(charged: ChargedResponse): ResponseCharge | undefined {
  const { method, path, response } = charged;
  const isKnown = mayGenerate(method, path);
  const { isEventStream: isStream, isJson } = mediaTypeOf(response.headers.get("content-type"));
  if (!isKnown && !(isStream && method === "POST")) return undefined;
  // What the Messages API wrote into a cache is in no count.
  const output = isJson && getEndpoint(path).folder !== "messages" ? undefined : new OutputObserver(isKnown);
  return new ResponseCharge(charged, isKnown, isStream, output);
}

/**
 * What the limits of tokens of a key are charged for one response, beside its counts: what the backend reported, else an
 * estimate by how the response ended.
 */
class ResponseCharge {
  /** All that was owed, and the part of it that is estimated. */
  total: Charge = { besideTokens: 0, estimatedTokens: 0 };

  /** @param output undefined if the usage of a response tells all that is charged for it */
  constructor(
    readonly charged: ChargedResponse,
    readonly isKnown: boolean,
    readonly isStream: boolean,
    readonly output: OutputObserver | undefined,
  ) {}

  /** What the backend did not report of a stream is estimated by what it showed. */
  #owe(usage: Usage, isWhole: boolean, isFailed = false): Charge {
    const { inputTokens, outputTokens } = usage;
    const { reservation, path, isInInput } = this.charged;
    const seen = this.output?.seen() ?? nothingSeen;
    const cache = isCacheApart(usage, path, isInInput) ? cachedTokensOf(usage) + seen.cacheWriteTokens : 0;
    const input = Math.max(inputTokens, Math.round(seen.choicesInputTokens * reservation.prompts)) + cache;
    const output = Math.max(outputTokens, seen.reportedTokens);
    let estimatedTokens = isFailed || input + output > 0 ? 0 : reservation.tokens;
    if (this.isStream) {
      const isReported = output > 0 && !seen.isOpening && (isWhole || !seen.hasUnreportedChoice);
      const ofInput = isFailed || input > 0 ? 0 : reservation.inputTokens;
      const ofOutput = isReported ? 0 : Math.max(0, seen.estimatedTokens - output);
      // On another path, a stream without output may be of anything.
      estimatedTokens = this.isKnown || seen.estimatedTokens > 0 ? ofInput + ofOutput : 0;
    }
    return { besideTokens: input + output - inputTokens - outputTokens + estimatedTokens, estimatedTokens };
  }

  /** @param isWhole the response has come to its end. @returns what is owed since the last call */
  owed(usage: Usage, isWhole: boolean): Charge {
    const before = this.total;
    this.total = this.#owe(usage, isWhole);
    return {
      besideTokens: this.total.besideTokens - before.besideTokens,
      estimatedTokens: this.total.estimatedTokens - before.estimatedTokens,
    };
  }

  /**
   * What is owed for a response that does not count, all of which is then an estimate.
   * @param isFailed it says so: what was generated is owed, and not the input
   */
  owedUncounted(usage: Usage, isFailed: boolean): number {
    const all = chargedTokens({ ...usage, ...this.#owe(usage, false, isFailed) });
    this.total = { besideTokens: all, estimatedTokens: all };
    return all;
  }
}

/** Whether a request generates tokens at a path whose responses report them. */
export const mayGenerate = (method: string, path: string): boolean => method === "POST" && getEndpoint(path).takesJson;

/** Whether the output of a stream that was cut stands in its counts. */
export const isOutputReported = ({ outputTokens }: Usage, shape: UsageShape | undefined): boolean =>
  outputTokens > 0 && shape?.outputIsOpening !== true;

/** Charges an estimate and counts nothing. */
export const chargeEvent = (
  counted: CountedFor & Pick<UsageEvent, "closedAt">,
  { estimatedTokens, admission }: { estimatedTokens: number; admission: Admission | undefined },
): UsageEvent => ({
  ...noUsage,
  ...counted,
  requestCount: 0,
  besideTokens: estimatedTokens,
  estimatedTokens,
  admission: admission?.handOver(),
});
