/**
 * Waits until `count` stays the same for 1,000 ticks of the event loop. A server of this process that could still make
 * progress would have made some.
 */
export async function untilSteady(count: () => number): Promise<void> {
  let last = count();
  for (let ticks = 0; ticks < 1000; ticks += 1) {
    await new Promise(setImmediate);
    if (count() !== last) ticks = 0;
    last = count();
  }
}
