import type { RequestObserver } from "../domain/requests.ts";
import type { WallClock } from "../time/clock.ts";

/** Knows since when requests have got no response from the upstream, for the console. */
export interface UpstreamFailures extends RequestObserver {
  /** Epoch milliseconds; undefined if the last request got one. */
  since(): number | undefined;
}

export function createUpstreamFailures(clock: WallClock): UpstreamFailures {
  let since: number | undefined;
  return {
    finished({ upstreamMs, cause }) {
      if (upstreamMs !== undefined) since = undefined;
      else if (cause !== undefined) since ??= clock();
    },
    since: () => since,
  };
}
