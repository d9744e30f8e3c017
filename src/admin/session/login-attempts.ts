import type { Log } from "../../log/log.ts";
import type { AttemptLimit } from "../../store/accounts/contract.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { addressScope, findWideScope } from "../../domain/client-address.ts";
import { ApiError } from "../http/errors.ts";

const attemptsPerMinute = 10;
/** Bounds all networks of an IPv6 /48 together: many providers assign one to a customer. */
const wideAttemptsPerMinute = 60;
const maxRemembered = 10_000;
/** A longer wait can only mean that the clock was set back. */
const maxWaitMs = 60_000;

export interface LoginClient {
  address: string;
  /** Has a live session, or logged in from this address before. */
  isKnown: boolean;
}

interface LoginAttemptsDeps {
  store: Pick<Store, "sessions">;
  clock: WallClock;
  log: Log;
  /** Gets how often a scope was refused since it was last called for it. */
  recordRefused?: (scope: string, times: number) => Promise<void>;
}

/** The limits on login attempts by address, for all processes on the database. */
export function createLoginAttempts({ store, clock, log, recordRefused }: LoginAttemptsDeps) {
  /** When each refused scope may try again, epoch milliseconds, and how often it was refused from memory until then. */
  const refusals = new Map<string, { until: number; times: number }>();

  async function remember(scope: string, until: number): Promise<void> {
    const times = 1 + (refusals.get(scope)?.times ?? 0);
    refusals.delete(scope);
    refusals.set(scope, { until, times: 0 });
    const [oldest] = refusals.keys();
    if (refusals.size > maxRemembered && oldest !== undefined) refusals.delete(oldest);
    await recordRefused?.(scope, times);
  }

  return {
    /**
     * From memory: a client that was refused costs the database nothing until its `Retry-After`.
     * @throws ApiError 429
     */
    throwIfRefused(client: LoginClient): void {
      for (const { scope } of limitsOf(client)) {
        const refusal = refusals.get(scope);
        const waitMs = (refusal?.until ?? 0) - clock();
        if (refusal === undefined || waitMs <= 0 || waitMs > maxWaitMs) continue;
        refusal.times++;
        throw tooManyAttempts(waitMs);
      }
    },
    /** @throws ApiError 429, and the attempt does not count */
    async count(client: LoginClient): Promise<void> {
      const now = clock();
      const refused = await store.sessions.countLoginAttempt(limitsOf(client), now);
      if (refused === undefined) return;
      await remember(refused.scope, now + refused.waitMs);
      log.warn("Login refused: too many attempts", { address: client.address });
      throw tooManyAttempts(refused.waitMs);
    },
  };
}

/** A known client does not count with the others of its /48, who may be strangers. */
function limitsOf({ address, isKnown }: LoginClient): AttemptLimit[] {
  const own = { scope: addressScope(address), attempts: attemptsPerMinute };
  const wide = isKnown ? undefined : findWideScope(address);
  return wide === undefined ? [own] : [own, { scope: wide, attempts: wideAttemptsPerMinute }];
}

export const tooManyAttempts = (waitMs: number): ApiError =>
  new ApiError(429, "Too many login attempts, try again later", {
    "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
  });
