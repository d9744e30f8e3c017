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

/** The limits on login attempts by address, for all processes on the database. */
export interface LoginAttempts {
  /**
   * From memory: a client that was refused costs the database nothing until its `Retry-After`.
   * @throws ApiError 429
   */
  throwIfRefused(client: LoginClient): void;
  /** @throws ApiError 429, and the attempt does not count */
  count(client: LoginClient): Promise<void>;
}

export interface LoginAttemptsDeps {
  store: Pick<Store, "sessions">;
  clock: WallClock;
  log: Log;
}

export function createLoginAttempts({ store, clock, log }: LoginAttemptsDeps): LoginAttempts {
  /** When each refused scope may try again, epoch milliseconds. */
  const refusedUntil = new Map<string, number>();

  function remember(scope: string, until: number): void {
    refusedUntil.delete(scope);
    refusedUntil.set(scope, until);
    if (refusedUntil.size <= maxRemembered) return;
    const [oldest] = refusedUntil.keys();
    if (oldest !== undefined) refusedUntil.delete(oldest);
  }

  return {
    throwIfRefused(client) {
      for (const { scope } of limitsOf(client)) {
        const waitMs = (refusedUntil.get(scope) ?? 0) - clock();
        if (waitMs > 0 && waitMs <= maxWaitMs) throw tooManyAttempts(waitMs);
      }
    },
    async count(client) {
      const now = clock();
      const refused = await store.sessions.countLoginAttempt(limitsOf(client), now);
      if (refused === undefined) return;
      remember(refused.scope, now + refused.waitMs);
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
