import type { Config } from "./config.ts";
import { probeUpstream } from "./proxy/upstream/probe.ts";
import type { Store } from "./store/store.ts";
import { measureDisk } from "./telemetry/disk.ts";
import type { Samples } from "./telemetry/sampled-metrics.ts";

/** How long the backend may take to count as up. */
const probeMs = 5_000;

/** What `/metrics` reports of the server's surroundings. */
export function samplesOf({ upstream, dataDir }: Config, store: Store): Samples {
  return {
    upstreamUp: () =>
      probeUpstream(upstream, AbortSignal.timeout(probeMs)).then(
        // A backend that refuses the request is up.
        ({ status }) => status < 500,
        () => false,
      ),
    database: store.size,
    disk: () => measureDisk(dataDir),
  };
}
