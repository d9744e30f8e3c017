// What the limits of keys say to a client: the headers of what is left, Codex's own beside OpenAI's, and the error of a request
// that a limit refuses, with when to try again. What a request reserves is here too, since a refusal tells of it.

import { isCalendarWindow, windowMinutes, windowResetAt } from "../../time/seoul.ts";
import { type ErrorDetails, ProxyError } from "../errors.ts";
import { getEndpoint } from "../rewrite/endpoint.ts";
import { estimateInput } from "../rewrite/tokens.ts";
import type { Rewritten } from "../rewrite/rewrite.ts";
import type { WallClock } from "../../time/clock.ts";
import { within } from "../../time/wait.ts";
import { hasBody, type ReceivedBody } from "./body.ts";
import type { KeyId, LimitName, Subject, SubjectId } from "../../domain/keys.ts";
import { anyHasLimit, limitAt, limitKinds, requestLimits, tokenLimits } from "../../domain/limits.ts";
import { type Admission, othersEndMs, type Reservation, defaultOutputTokens } from "../../domain/admissions.ts";

/** What a refusal takes from the request. */
interface RefusedRequest {
  /** The URL's pathname. */
  path: string;
  /** Undefined for a key without limits of tokens. */
  reservation?: Reservation | undefined;
  /** Epoch milliseconds. */
  now: number;
}

/** Admissions and counts of one response stay below it. */
const maxReservation = 1_000_000_000;

/** How many tokens to reserve for a request. One without a body generates nothing. */
export async function reservationFor(
  received: Pick<ReceivedBody, "came" | "plain">,
  { maxTokens, maxTokensName, times, prompts }: Rewritten,
  keyId: KeyId,
): Promise<Reservation> {
  const { plain } = received;
  const inputTokens = plain === undefined ? 0 : await estimateInput(plain, keyId);
  const outputTokens = (maxTokens ?? defaultOutputTokens) * times;
  const tokens = hasBody(received) ? Math.min(inputTokens + outputTokens, maxReservation) : 0;
  const leastTokens = maxTokens === undefined && tokens > 0 ? inputTokens + 1 : undefined;
  return { inputTokens, tokens, leastTokens, limitedBy: maxTokensName, texts: times, prompts };
}

type HeaderPairs = readonly (readonly [name: string, value: string])[];

/**
 * OpenAI's headers that report how much is left. They are sent with every response to a key with limits. Of several limits
 * of tokens, or of its team too, the one that leaves the least counts.
 * @param codex given for Codex, which gets its own beside them
 */
export function rateLimitHeaders(
  subjects: readonly Subject[],
  used: Admission["used"],
  now: number,
  codex?: CodexReader,
): HeaderPairs {
  const pairs: [name: string, value: string][] = [];
  for (const { headers, names } of reported) {
    const left = leastLeft(names, subjects, used, now);
    if (left === undefined) continue;
    const [limit, remaining, reset] = headers;
    const resetMs = left.remaining === left.limit ? 0 : windowResetAt(limitKinds[left.name].window, now) - now;
    pairs.push([limit, String(left.limit)], [remaining, String(left.remaining)], [reset, durationText(resetMs)]);
  }
  return codex === undefined ? pairs : [...pairs, ...codexHeaders(codex, subjects, used, now)];
}

/** From here on, Codex offers a model of another vendor, and *yes* is selected. */
const offerPercent = 90;
/** Codex warns by the place of a limit, so it keeps that until it is so much less full than another. */
const placeMargin = 5;

export interface CodexReader {
  keyId: KeyId;
  /** Which limit of each key it was shown first, as far as this process knows. */
  first: Map<KeyId, LimitName>;
}

/**
 * What Codex shows of the limits by the calendar: the fullest and the next one, by what is charged, in whole percent, rounded
 * down because Codex rounds. Nothing once one is so full that it would offer another model.
 */
function codexHeaders(
  { keyId, first: firsts }: CodexReader,
  subjects: readonly Subject[],
  used: Admission["used"],
  now: number,
): HeaderPairs {
  const before = firsts.get(keyId);
  const shown = tokenLimits.flatMap((name) => {
    const { window } = limitKinds[name];
    if (!isCalendarWindow(window)) return [];
    const percents = subjects.flatMap(({ limits }, at) => {
      const [limit, charged] = [limitAt(limits, name, now), used(name, at, true)];
      return limit === null || charged === undefined ? [] : (100 * charged) / limit;
    });
    if (percents.length === 0) return [];
    const percent = Math.max(...percents);
    return { name, window, percent, rank: name === before ? percent + placeMargin : percent };
  });
  shown.sort((one, other) => other.rank - one.rank);
  const [first, second] = shown;
  if (first !== undefined && second !== undefined) firsts.set(keyId, first.name);
  if (shown.some(({ percent }) => percent >= offerPercent)) return [];
  return [first, second].flatMap((one, place) => {
    if (one === undefined) return [];
    const of = `x-codex-${place === 0 ? "primary" : "secondary"}`;
    const resetSeconds = Math.ceil(windowResetAt(one.window, now) / 1000);
    return [
      [`${of}-used-percent`, String(Math.floor(one.percent))],
      [`${of}-window-minutes`, String(windowMinutes[one.window])],
      [`${of}-reset-at`, String(resetSeconds)],
    ] as const;
  });
}

const namesOf = (unit: string) =>
  [`x-ratelimit-limit-${unit}`, `x-ratelimit-remaining-${unit}`, `x-ratelimit-reset-${unit}`] as const;
const reported = [
  { headers: namesOf("requests"), names: requestLimits },
  { headers: namesOf("tokens"), names: tokenLimits },
] as const;

interface Left {
  name: LimitName;
  limit: number;
  remaining: number;
}

/** What is left of the limit that has the least left, of those that are set. */
function leastLeft(
  names: readonly LimitName[],
  subjects: readonly Subject[],
  used: Admission["used"],
  now: number,
): Left | undefined {
  let least: Left | undefined;
  for (const [at, { limits }] of subjects.entries()) {
    for (const name of names) {
      const limit = limitAt(limits, name, now);
      const taken = used(name, at);
      if (limit === null || taken === undefined) continue;
      const remaining = Math.max(0, limit - taken);
      if (least === undefined || remaining < least.remaining) least = { name, limit, remaining };
    }
  }
  return least;
}

/** Formats a duration as Go does: `59s`, `1m1s`, `11h0m5s`. */
function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const rest = `${seconds % 60}s`;
  if (minutes === 0) return rest;
  return minutes < 60 ? `${minutes}m${rest}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${rest}`;
}

/** @param unit begins with a plural, or has it as its second word */
const amountOf = (count: number, unit: string): string => `${count} ${count === 1 ? unit.replace(/s\b/, "") : unit}`;

/** Such as `20M`, and no less exact. */
const shortOf = (count: number): string =>
  count % 1_000_000 === 0 ? `${count / 1_000_000}M` : count % 1000 === 0 ? `${count / 1000}k` : String(count);

/** OpenAI's SDK tries again within seconds if it should wait for longer, and the window of a minute takes 61. */
const maxRetrySeconds = 60;

/** The error that names the limit that refused a request, and when to try again. */
export function limitRefusal(
  limit: LimitName | "unavailable",
  subjects: readonly Subject[],
  { waitMs, used, at }: Pick<Admission, "waitMs" | "used" | "at">,
  { path, reservation, now }: RefusedRequest,
): ProxyError {
  const { limits, team, isUser } = subjects[at] ?? {};
  if (limit === "unavailable" || limits === undefined) return new ProxyError("limits_unavailable");
  const { window, unit } = limitKinds[limit];
  // For so long that only a person can wait; not if it waits only for tokens that running requests reserve.
  const isUsedUp = isCalendarWindow(window) && waitMs > othersEndMs;
  const seconds = Math.min(Math.ceil(waitMs / 1000), maxRetrySeconds);
  const resetAt = windowResetAt(window, now);
  const resets = window === "day" ? "midnight, Seoul" : dayAndMonth.format(resetAt);
  const soon = `try again in ${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  const [plain, most] = [limits[limit] ?? 0, limitAt(limits, limit, now) ?? 0];
  const amount = amountOf(plain, unit) + (most > plain ? ` and ${shortOf(most - plain)} more until ${resets}` : "");
  // Unknown while the database does not answer.
  const left = most - (used(limit, at) ?? Infinity);
  const isTooLarge = tokenLimits.includes(limit) && left > 0;
  const leftOfAll = leastLeft(tokenLimits, subjects, used, now)?.remaining ?? left;
  const isFree = isUsedUp ? `it is free again ${window === "day" ? "at" : "on"} ${resets}` : soon;
  const [whose, ofWhom] =
    isUser === true
      ? ["You are", " that you have"]
      : team === undefined
        ? ["This API key is", ""]
        : [`Your team (${team}) is`, ` of your team (${team})`];
  const when = isUsedUp ? `wait until ${resets}` : soon;
  const message =
    isTooLarge && reservation !== undefined
      ? tooLargeText(reservation, { left, leftOfAll, amount: amount + ofWhom, when })
      : `${whose} limited to ${amount}; ${isFree}.`;
  return new ProxyError(limit, {
    ...(isUsedUp && usedUpRefusal(path, limit, resetAt, now)),
    message,
    headers: [
      isUsedUp
        ? // Until then, an SDK that retries only wastes its user's time, and some clients sleep for hours if told to.
          ["x-should-retry", "false"]
        : ["retry-after", String(seconds)],
      ...rateLimitHeaders(subjects, used, now),
    ],
  });
}

/** Such as `1 December`. */
const dayAndMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "Asia/Seoul" });

/**
 * A client whose one request is larger than what is left can do more than wait.
 * @param leftOfAll what is left of the limit of tokens that has the least left
 */
function tooLargeText(
  { tokens, inputTokens, texts, limitedBy = "max_tokens" }: Reservation,
  { left, leftOfAll, amount, when }: { left: number; leftOfAll: number; amount: string; when: string },
): string {
  const most = Math.floor((leftOfAll - inputTokens) / texts);
  const advice = most >= 1 ? `lower ${limitedBy} to at most ${most}, or ${when}` : when;
  return `This request may use ${tokens} tokens, and of the limit of ${amount}, ${left} are left: ${advice}.`;
}

/**
 * The status and members by which agents end at once and show the sentence: 402, but to Codex, which repeats that, and shows the
 * time of an error of this type alone. Times are whole seconds.
 */
function usedUpRefusal(
  path: string,
  limit: LimitName,
  freeAt: number,
  now: number,
): Pick<ErrorDetails, "status" | "members"> {
  const { folder } = getEndpoint(path);
  if (folder !== "responses") {
    const [type, code] = [folder === "messages" ? "billing_error" : "insufficient_quota", "insufficient_quota"];
    return { status: 402, members: { type, code, param: limit } };
  }
  const resets = { resets_at: Math.ceil(freeAt / 1000), resets_in_seconds: Math.ceil((freeAt - now) / 1000) };
  return { members: { type: "usage_limit_reached", ...resets } };
}

/** What counts against the limits of subjects now. */
export type ReadUsed = (subjects: readonly SubjectId[]) => Promise<Admission["used"]>;

/** An error must not wait for a database that is away. */
const waitLimitMs = 1000;

/**
 * The headers that report how much is left, for an error before its request is admitted: an admission reports it otherwise.
 * @returns none if the database does not respond in time
 */
export async function readLimitsLeft(
  subjects: readonly Subject[],
  { readUsed, wall }: { readUsed: ReadUsed; wall: WallClock },
  codex?: CodexReader,
): Promise<HeaderPairs> {
  if (!anyHasLimit(subjects, [...tokenLimits, ...requestLimits])) return [];
  try {
    const used = await within(waitLimitMs, readUsed(subjects.map(({ id }) => id)));
    return rateLimitHeaders(subjects, used, wall(), codex);
  } catch {
    return [];
  }
}
