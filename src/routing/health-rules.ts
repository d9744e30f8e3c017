import type { BackendSign } from "../domain/backends.ts";

export type Health = Readonly<typeof healthy>;

/** What a backend's responses and probes tell of it. */
export const healthy = {
  isOut: false,
  /** A probe is to tell whether it is up. */
  isSuspect: false,
  /** How often in a row no connection was made. */
  unreachable: 0,
  /** How often in a row it failed, whatever probes said. */
  failed: 0,
  /** Until then it asks for no more requests, by the monotonic clock. */
  busyUntil: 0,
  /** How many requests without a first byte it gets at once, since it is back; undefined: any number. */
  warmUp: undefined as number | undefined,
};

const [maxUnreachable, maxFailed] = [2, 3];
/** One that fails is fast and so has little to do: without a pause, most requests would go there. */
const [firstFailingMs, longestFailingMs] = [1000, 30_000];
/** A backend that asks for more gets requests that have no other choice meanwhile. */
const maxBusyMs = 60_000;
/** A backend that takes so many new requests at once is warm. */
const warm = 256;

export function afterSign(health: Health, sign: BackendSign, now: number): Health {
  const retryAfterMs = "retryAfterMs" in sign ? (sign.retryAfterMs ?? 0) : 0;
  const busyUntil = Math.max(health.busyUntil, now + Math.min(retryAfterMs, maxBusyMs));
  if (sign.kind === "unreachable") return suspected({ ...health, unreachable: health.unreachable + 1 });
  if (sign.kind === "failed") return afterFailure({ ...health, busyUntil, unreachable: 0 }, now);
  // Whoever takes requests is up, whatever a probe says. One whose bodies tell of failures takes them too.
  const answering = { ...health, isSuspect: health.isSuspect && health.failed >= maxFailed, unreachable: 0 };
  if (sign.kind === "begun") return warmer(answering);
  return sign.kind === "responded" ? answering : { ...answering, isSuspect: false, failed: 0, busyUntil };
}

/** Once it failed so often, it gets requests that have no other choice for a while, longer with each failure. */
function afterFailure(health: Health, now: number): Health {
  const failed = health.failed + 1;
  if (failed < maxFailed) return { ...health, failed };
  const pauseMs = Math.min(firstFailingMs * 2 ** (failed - maxFailed), longestFailingMs);
  const busyUntil = Math.max(health.busyUntil, now + pauseMs);
  return suspected({ ...health, failed, busyUntil });
}

/** One client that asks for what the backend does not offer must not take it from the others: only a probe does. */
const suspected = (health: Health): Health => ({
  ...health,
  isSuspect: !health.isOut && (health.isSuspect || health.unreachable >= maxUnreachable || health.failed >= maxFailed),
});

/** Twice as many at once with each that has its first byte. */
function warmer(health: Health): Health {
  const { warmUp } = health;
  if (warmUp === undefined) return health;
  return { ...health, warmUp: warmUp * 2 < warm ? warmUp * 2 : undefined };
}

/** @param isUp what the probe says that was called while the backend was suspect or out */
export function afterProbe(health: Health, isUp: boolean): Health {
  if (isUp) return health.isOut ? returned : { ...health, isSuspect: false, unreachable: 0 };
  return health.isSuspect ? { ...healthy, isOut: true } : health;
}

/** It was out or drained: its caches are cold, and what waited must not come all at once. */
export const returned: Health = { ...healthy, warmUp: 1 };
