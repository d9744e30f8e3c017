import { limitKinds, limitNames } from "../../../src/domain/limits.ts";
import { count, milliseconds, plural, threeDigits } from "../lib/format.ts";
import type { LoggedRequest, RequestGroups } from "./queries.ts";
import { lossLabel, outcomeLabel, reasonLabel } from "./request-format.ts";

/** What the row of the request does not have; undefined: not known yet, or at all. */
export interface Beside {
  /** How many its key may run at once now. */
  maxConcurrency?: number | null | undefined;
  /** Its share of the input, and its cost, as text. */
  sums?: Pick<RequestGroups["total"], "prompt_tokens" | "from_cache_tokens"> | undefined;
  cost?: string | undefined;
}

/** A shorter wait is told by the timeline alone. */
const toldMs = 50;

/** What happened to a request, in the order in which it did. */
export function requestStory(request: LoggedRequest, beside: Beside = {}): string[] {
  return [waitOf(request, beside), routeOf(request), endOf(request), chargeOf(request), cacheOf(request, beside)]
    .concat(beside.cost === undefined ? [] : `It cost ${beside.cost}.`)
    .filter((sentence) => sentence !== undefined);
}

function waitOf({ queue_ms: queue, duration_ms: end, waited_for: what }: LoggedRequest, beside: Beside) {
  const ms = queue ?? end;
  if (what === null || ms < toldMs) return undefined;
  if (what === "prefill") return `Waited ${milliseconds(ms)} until another long prompt was read.`;
  if (what === "backend") return `Waited ${milliseconds(ms)} for a place at a backend.`;
  const most = beside.maxConcurrency;
  return typeof most === "number"
    ? `Waited ${milliseconds(ms)} because this key may run ${count(most)} at once.`
    : `Waited ${milliseconds(ms)} for the limits of its key.`;
}

function routeOf({ backend, reason, sends }: LoggedRequest): string | undefined {
  if (backend === null) return undefined;
  const tried = sends === null ? "" : `It was sent ${plural(sends, "time")}. `;
  if (reason === null || reason === "only") return tried.trimEnd() || undefined;
  return `${tried}It went to ${backend} because ${reasonLabel(reason)}.`;
}

const unitOf = (code: string | null): string | undefined => {
  const limit = limitNames.find((name) => name === code);
  return limit && limitKinds[limit].unit;
};

/** How the backend answered, or why there was no answer. */
function endOf(request: LoggedRequest): string {
  const { outcome, backend, upstream_ms: head, duration_ms: end, message, status } = request;
  const cause = message ?? request.cause ?? request.code;
  const because = cause === null ? "" : `: ${cause}`;
  if (backend === null) {
    if (outcome === "client_left") return `Its client left after ${milliseconds(end)}, before it was sent.`;
    if (outcome === "completed") return `Tollgate responded itself, with ${status}.`;
    const unit = message === null ? unitOf(request.code) : undefined;
    return unit === undefined
      ? sentence(`${outcomeLabel(outcome)}${because}`)
      : `Refused: its limit of ${unit} was used up.`;
  }
  const began = head === null ? `${backend} sent no answer` : `${backend} began to answer after ${milliseconds(head)}`;
  if (outcome === "completed")
    return sentence(status >= 400 ? `${began}, with ${status}${because}` : began + wrote(request));
  if (outcome === "upstream_failed") return sentence(`${began}${wrote(request)}, then failed${because}`);
  if (outcome === "timed_out") return sentence(`${began}${wrote(request)}, then sent nothing for too long${because}`);
  const whoEnded: Readonly<Record<string, string>> = {
    client_left: "Its client left",
    shutdown: "A shutdown of Tollgate ended it",
    revoked: "It ended with its key",
    ended_by_admin: "It was ended in the console",
  };
  return `${sentence(began + wrote(request))} ${whoEnded[outcome] ?? outcomeLabel(outcome)} after ${milliseconds(end)}.`;
}

function wrote(request: LoggedRequest): string {
  const { output_tokens: tokens, uncounted } = request;
  if (uncounted) return "; it was cut before its output was counted";
  if (tokens === null || tokens === 0) return "";
  const speed = outputSpeed(request);
  return ` and wrote ${plural(tokens, "token")}${speed === undefined ? "" : ` at ${threeDigits(speed)} a second`}`;
}

const chargeOf = ({ estimated_tokens: tokens }: LoggedRequest): string | undefined =>
  tokens === null
    ? undefined
    : `Its limits of tokens were charged ${count(tokens)} by an estimate, because the backend reported none.`;

function cacheOf({ cache_loss: loss }: LoggedRequest, { sums }: Beside): string | undefined {
  const from =
    sums === undefined || sums.prompt_tokens === 0 || (sums.from_cache_tokens === 0 && loss === null)
      ? undefined
      : `${count(sums.from_cache_tokens)} of ${plural(sums.prompt_tokens, "input token")} came from the cache`;
  if (loss === null) return from && `${from}.`;
  return `${from ?? "Little of its input came from the cache"} because ${lossLabel(loss)}.`;
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

/** Output tokens per second of the response; undefined without a stream that lasted. */
export function outputSpeed(
  request: Pick<LoggedRequest, "first_byte_ms" | "duration_ms" | "output_tokens" | "streamed">,
): number | undefined {
  const { output_tokens: tokens, first_byte_ms: firstByte, duration_ms: end, streamed } = request;
  if (!streamed || tokens === null || tokens < 2 || firstByte === null || end - firstByte < 1) return undefined;
  return ((tokens - 1) * 1000) / (end - firstByte);
}
