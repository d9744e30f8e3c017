import type { Log } from "../log/log.ts";
import { createBackoff } from "../time/backoff.ts";
import { wait } from "../time/wait.ts";
import type { Child } from "./child.ts";

/** Delay before a replacement starts; it doubles while the replacements are short-lived. */
const [firstRestartMs, slowestRestartMs] = [400, 10_000];
/** A process that ran this long did not fail at startup. */
const stableMs = 10_000;

type Leaving = Pick<Child, "pid" | "leaving">;

/** Replaces a process, and each replacement, when it leaves, until the signal aborts. */
export async function keepRunning(
  child: Leaving,
  start: () => Leaving,
  { log, signal }: { log: Log; signal: AbortSignal },
): Promise<void> {
  const backoff = createBackoff(firstRestartMs, slowestRestartMs);
  for (let current = child; ; current = start()) {
    const startedAt = performance.now();
    const status = await current.leaving;
    if (signal.aborted) return;
    if (performance.now() - startedAt > stableMs) backoff.reset();
    const inMs = Math.round(backoff.next());
    const fields = { child: current.pid, status: status ?? "draining", inMs };
    log.warn("Worker process exited; starting a replacement", fields);
    // A signal from a terminal also reaches the children: wait, so that it arrives here before they are replaced.
    await wait(inMs, signal);
    if (signal.aborted) return;
  }
}
