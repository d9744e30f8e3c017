import { minuteWindowSeconds, windowResetAt } from "../../time/windows.ts";
import type { Lease, LeaseRequest } from "./contract.ts";
import { addRequests, findExceeded, type KeyLoad, type KeySecond, usedOf } from "./windows.ts";
import type { KeyLimits, LimitName } from "../../domain/keys.ts";
import { limitKinds } from "../../domain/limits.ts";

/** A request as the limits judge it. */
export interface Judged {
  /** Undefined: it is admitted. */
  refusedBy: LimitName | undefined;
  /** What counts, the request included if it is admitted. */
  load: KeyLoad;
}

/** Which requests the limits allow, in order. On PostgreSQL `tollgate_take_leases` does the same. */
export function judge(load: KeyLoad, { limits, requests }: Pick<LeaseRequest, "limits" | "requests">): Judged[] {
  const judged: Judged[] = [];
  let current = load;
  for (const tokens of requests) {
    const refusedBy = findExceeded(current, limits, tokens);
    if (refusedBy === undefined) current = addRequests({ ...current }, tokens, 1);
    judged.push({ refusedBy, load: current });
  }
  return judged;
}

/** How soon a client may try again whose request waits for others of its key to end. */
export const heldWaitMs = 1000;

/** How long until a refused request may be admitted; undefined if that depends on what others hold. */
export function waitOf(
  { refusedBy, load }: Judged,
  { limits, tokens }: { limits: KeyLimits; tokens: number },
  { now, seconds = [] }: Pick<Lease, "now" | "seconds">,
): number | undefined {
  if (refusedBy === undefined) return 0;
  const limit = limits[refusedBy] ?? 0;
  const { counts, window } = limitKinds[refusedBy];
  const excess = usedOf(load, refusedBy) + (counts === "tokens" ? Math.min(tokens, limit) : 1) - limit;
  const freesAt = (): number | undefined => {
    if (window === "now") return undefined;
    // What the seconds do not have yet was admitted with it, and so in this second.
    if (window === "minute" && counts === "requests")
      return minuteFreesAt(seconds, counts, excess) ?? windowEndOf(Math.floor(now / 1000));
    if (window === "minute") return minuteFreesAt(seconds, counts, excess);
    // Without the reserved tokens it may fit.
    return excess <= load.reserved ? undefined : windowResetAt(window, now);
  };
  const at = freesAt();
  return at === undefined ? undefined : Math.max(1, at - now);
}

/** When what happened in a second counts no more, epoch milliseconds. */
export const windowEndOf = (second: number): number => (second + minuteWindowSeconds) * 1000;

/**
 * When enough of a minute's window has passed, epoch milliseconds.
 * @param seconds oldest first
 * @param excess by how much the limit is exceeded
 * @returns undefined if these seconds do not hold that much: the rest is reserved, or of requests that are being admitted
 */
export function minuteFreesAt(
  seconds: readonly KeySecond[],
  counter: "requests" | "tokens",
  excess: number,
): number | undefined {
  let freed = 0;
  for (const one of seconds) {
    freed += one[counter];
    if (freed >= excess) return windowEndOf(one.second);
  }
  return undefined;
}
