import type { BackendStates, BackendStatus } from "../domain/backends.ts";

/**
 * The backends as those see them who grant places. Requests that need none are not known there.
 * @param load of the only backend, while requests need no place
 */
export const withLoad = (
  { list, ...tell }: BackendStates,
  load: () => Promise<Pick<BackendStatus, "inFlight" | "waiting"> | undefined>,
): BackendStates => ({
  async list() {
    const [states, only] = await Promise.all([list(), load()]);
    return only === undefined ? states : states.map((state) => Object.assign(state, only));
  },
  ...tell,
});
