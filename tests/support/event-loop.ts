/** Waits for enough ticks of the event loop for a chunk to pass through a few streams. */
export async function passTicks(count = 10): Promise<void> {
  for (let tick = 0; tick < count; tick++) await new Promise(setImmediate);
}
