import type { Forward } from "../../src/proxy/upstream/forward.ts";
import type { Forwards } from "../../src/proxy/upstream/forward.ts";

/** Sends what is for any backend in the same way. */
export const forwardsTo = (forward: Forward): Forwards => ({ get: () => forward });
