/**
 * What a promise is rejected with. For promises of client libraries, which are not plain ones: Bun's `rejects` takes
 * them for resolved (1.4.5).
 * Remove when `rejects` awaits them.
 * @throws Error where it is not rejected
 */
export async function rejectionOf(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("The promise was not rejected");
}
