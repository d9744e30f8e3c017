/**
 * The CPU time that this process uses while something happens, its threads included, in milliseconds. The time that
 * passes says more about what else a busy machine does.
 */
export async function processorMs(act: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** As `processorMs`, of this thread alone. */
export function threadMs(act: () => unknown): number {
  const before = process.threadCpuUsage();
  act();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/**
 * What each of two acts costs, by turns: the least of several times, because whatever else the process does only adds.
 */
export async function leastProcessorMs(
  times: number,
  first: () => Promise<unknown>,
  second: () => Promise<unknown>,
): Promise<[number, number]> {
  const least: [number, number] = [Infinity, Infinity];
  for (let round = 0; round < times; round++) {
    least[0] = Math.min(least[0], await processorMs(first));
    least[1] = Math.min(least[1], await processorMs(second));
  }
  return least;
}
