import type { Admission, Reservation } from "../../domain/admissions.ts";
import {
  type CountedFor,
  cachedTokensOf,
  type Charge,
  chargedTokens,
  noUsage,
  type Usage,
} from "../../domain/usage.ts";
import type { UsageEvent } from "../../domain/usage-event.ts";
import { getEndpoint } from "../rewrite/endpoint.ts";
import { isEventStream, isJson } from "../stream/body-kind.ts";
import type { UsageShape } from "../stream/event-usage.ts";
import { nothingSeen, OutputObserver, type SeenOutput } from "../stream/output.ts";

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
  const type = { contentType: response.headers.get("content-type") };
  const isStream = isEventStream(type);
  if (!isKnown && !(isStream && method === "POST")) return undefined;
  // What the Messages API wrote into a cache is in no count.
  const output = isJson(type) && getEndpoint(path).folder !== "messages" ? undefined : new OutputObserver(isKnown);
  return new ResponseCharge(charged, isKnown, isStream, output);
}

/**
 * What the limits of tokens of a key are charged for one response, beside its counts: what the backend reported, else an
 * estimate by how the response ended.
 */
class ResponseCharge {
  #total: Charge = { besideTokens: 0, estimatedTokens: 0 };

  /** @param output undefined if the usage of a response tells all that is charged for it */
  constructor(
    readonly charged: ChargedResponse,
    readonly isKnown: boolean,
    readonly isStream: boolean,
    readonly output: OutputObserver | undefined,
  ) {}

  #owe(usage: Usage, isWhole: boolean, isFailed = false): Charge {
    const { inputTokens, outputTokens } = usage;
    const { reservation, path, isInInput } = this.charged;
    const { inputTokens: estimatedInput, tokens, prompts } = reservation;
    const seen = this.output?.seen() ?? nothingSeen;
    const cache = isCacheApart(usage, path, isInInput) ? cachedTokensOf(usage) + seen.cacheWriteTokens : 0;
    const input = Math.max(inputTokens, Math.round(seen.choicesInputTokens * prompts)) + cache;
    const output = Math.max(outputTokens, seen.reportedTokens);
    const whole = isFailed || input + output > 0 ? 0 : tokens;
    // On another path, a stream without output may be of anything.
    const generates = this.isKnown || seen.estimatedTokens > 0;
    const ofStream = generates ? estimateStream({ input, output, isWhole }, seen, isFailed ? 0 : estimatedInput) : 0;
    const estimatedTokens = this.isStream ? ofStream : whole;
    return { besideTokens: input + output - inputTokens - outputTokens + estimatedTokens, estimatedTokens };
  }

  /** @param isWhole the response has come to its end. @returns what is owed since the last call */
  owed(usage: Usage, isWhole: boolean): Charge {
    const before = this.#total;
    this.#total = this.#owe(usage, isWhole);
    return {
      besideTokens: this.#total.besideTokens - before.besideTokens,
      estimatedTokens: this.#total.estimatedTokens - before.estimatedTokens,
    };
  }

  /**
   * What is owed for a response that does not count, all of which is then an estimate.
   * @param isFailed it says so: what was generated is owed, and not the input
   */
  owedUncounted(usage: Usage, isFailed: boolean): number {
    const all = chargedTokens({ ...usage, ...this.#owe(usage, false, isFailed) });
    this.#total = { besideTokens: all, estimatedTokens: all };
    return all;
  }

  /** The part of what was owed that is estimated. */
  get estimatedTokens(): number {
    return this.#total.estimatedTokens;
  }
}

/** Whether a request generates tokens at a path whose responses report them. */
export const mayGenerate = (method: string, path: string): boolean => method === "POST" && getEndpoint(path).takesJson;

/** Whether the output of a stream that was cut stands in its counts. */
export const isOutputReported = ({ outputTokens }: Usage, shape: UsageShape | undefined): boolean =>
  outputTokens > 0 && shape?.outputIsOpening !== true;

/** What the backend did not report of a stream. @param input with `output`, what it did */
function estimateStream(
  { input, output, isWhole }: { input: number; output: number; isWhole: boolean },
  { estimatedTokens, isOpening, hasUnreportedChoice }: SeenOutput,
  estimatedInput: number,
): number {
  const isReported = output > 0 && !isOpening && (isWhole || !hasUnreportedChoice);
  return (input > 0 ? 0 : estimatedInput) + (isReported ? 0 : Math.max(0, estimatedTokens - output));
}

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
