const pollMs = 5;

/** A deadline only ends a test that would hang, so it is far longer than a loaded machine needs. */
export const defaultDeadlineMs = 20_000;

/**
 * Waits for a condition that nothing announces.
 * @returns the first value that is neither undefined, null nor false
 * @throws Error after the deadline, with the last error of the condition as its cause
 */
export async function until<T>(
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
  throw new Error(`Still not so after ${deadlineMs} ms: ${condition.toString()}`, { cause: lastError });
}
