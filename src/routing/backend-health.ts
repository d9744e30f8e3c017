import type { BackendSign } from "../domain/backends.ts";
import type { Backend } from "../domain/models.ts";
import { createBackoff } from "../time/wait.ts";
import type { MonotonicClock } from "../time/clock.ts";
import { afterProbe, afterSign, type Health, healthy, returned } from "./health-rules.ts";

/** Asks a backend whether it is up. */
export type ProbeBackend = (backend: Backend) => Promise<{ ok: boolean; cause?: string }>;

/** The health of one backend over time; disposed, it is probed no more. */
export type BackendHealth = ReturnType<typeof watchHealth>;

export interface HealthOptions {
  probe: ProbeBackend;
  /** What the requests that run now have received, by anything that names a request and its backend. */
  received: () => Promise<readonly { id: string; backend: string | undefined; receivedBytes: number }[]>;
  monotonic: MonotonicClock;
  /** @param cause why the probe failed */
  onChange: (health: Health, before: Health, cause: string | undefined) => void;
}

const [firstPauseMs, longestPauseMs] = [1000, 30_000];

export function watchHealth({ probe, received, monotonic, onChange }: HealthOptions) {
  const pauses = createBackoff(firstPauseMs, longestPauseMs);
  let backend: Backend | undefined;
  let health = healthy;
  let next: Timer | undefined;
  let probing: AbortController | undefined;

  function change(to: Health, cause?: string): void {
    const before = health;
    health = to;
    if (to.isSuspect && !before.isSuspect) void ask();
    onChange(to, before, cause);
  }

  function stop(): void {
    clearTimeout(next);
    probing?.abort();
    probing = undefined;
  }

  /** One that is too busy to take a connection is not out while its responses flow. */
  async function probeOrSeeMoving(asked: Backend): ReturnType<ProbeBackend> {
    const [before, found] = await Promise.all([
      received().catch(() => []),
      probe(asked).catch((error: unknown) => ({ ok: false, cause: String(error) })),
    ]);
    if (found.ok || health.isOut) return found;
    const bytes = new Map(before.map(({ id, receivedBytes }) => [id, receivedBytes]));
    const after = await received().catch(() => []);
    const moves = after.some(
      (one) => one.backend === asked.name && one.receivedBytes > (bytes.get(one.id) ?? one.receivedBytes),
    );
    return moves ? { ok: true } : found;
  }

  async function ask(): Promise<void> {
    if (backend === undefined || probing !== undefined) return;
    clearTimeout(next);
    const own = (probing = new AbortController());
    const { ok, cause } = await probeOrSeeMoving(backend);
    if (own.signal.aborted) return;
    probing = undefined;
    if (ok) pauses.reset();
    change(afterProbe(health, ok), cause);
    if (health.isOut) next = setTimeout(() => void ask(), pauses.next());
  }

  return {
    get health(): Health {
      return health;
    },
    /** @param replaced the server behind the name; undefined: none any more */
    follow(replaced: Backend | undefined): void {
      const isOther = replaced?.url !== backend?.url;
      backend = replaced;
      if (!isOther) return;
      stop();
      pauses.reset();
      // Another address is another server. One in the place of one that is out may not be up yet: requests wait for it.
      const mustAsk = health.isOut && replaced !== undefined;
      health = mustAsk ? { ...healthy, isOut: true } : healthy;
      if (mustAsk) void ask();
    },
    note(sign: BackendSign): void {
      // Somebody tried it all the same, and it answered.
      if (health.isOut && sign.kind === "responded") void ask();
      change(afterSign(health, sign, monotonic()));
    },
    /** It gives no sign: a probe is to tell whether it is up. */
    doubt(): void {
      if (!health.isOut) change({ ...health, isSuspect: true });
    },
    /** It takes requests again. */
    warmUp(): void {
      if (!health.isOut) change(returned);
    },
    [Symbol.dispose]: stop,
  };
}
