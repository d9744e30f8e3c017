import type { Config } from "../config/config.ts";
import { checkUpstream } from "../proxy/upstream/probe.ts";
import type { Store } from "../store/store.ts";
import { measureDisk } from "../telemetry/disk.ts";
import type { Samples } from "../telemetry/sampled-metrics.ts";

/** How long the backend may take to count as up. */
const probeMs = 5_000;

/** What `/metrics` reports of the server's surroundings. */
export function samplesOf({ upstream, storage: { dataDir } }: Config, store: Store): Samples {
  return {
    upstreamUp: async () => (await checkUpstream(upstream, AbortSignal.timeout(probeMs))).ok,
    database: store.size,
    disk: () => measureDisk(dataDir),
  };
}
