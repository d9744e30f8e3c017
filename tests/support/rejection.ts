/**
 * The reason of a rejected promise. For promises of client libraries, which subclass Promise: Bun's `rejects` treats
 * them as resolved (1.4.5).
 * Remove when `rejects` awaits them.
 * @throws Error if the promise resolves
 */
export async function rejectionOf(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("The promise was not rejected");
}
