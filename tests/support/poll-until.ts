const pollMs = 5;

/** A deadline only ends a test that would hang, so it is far longer than a loaded machine needs. */
export const defaultDeadlineMs = 60_000;

/**
 * Polls a condition that has no event to wait for.
 * @returns the first value that is neither undefined, null nor false
 * @throws Error after the deadline, with the condition's last error as its cause
 */
export async function pollUntil<T>(
  condition: () => T | Promise<T>,
  deadlineMs = defaultDeadlineMs,
): Promise<Exclude<T, undefined | null | false>> {
  const deadline = performance.now() + deadlineMs;
  let lastError: unknown;
  while (performance.now() < deadline) {
    try {
      const value = await condition();
      if (value !== undefined && value !== null && value !== false)
        return value as Exclude<T, undefined | null | false>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    await Bun.sleep(pollMs);
  }
  throw new Error(`Condition not met within ${deadlineMs} ms: ${condition.toString()}`, { cause: lastError });
}

/**
 * Polls a value until it stops changing.
 * @returns the first value that stayed the same for `quietMs`
 */
export async function pollUntilStable(read: () => number, quietMs = 100): Promise<number> {
  let value = read();
  let changedAt = performance.now();
  await pollUntil(() => {
    const latest = read();
    if (latest !== value) changedAt = performance.now();
    value = latest;
    return performance.now() - changedAt >= quietMs;
  });
  return value;
}
