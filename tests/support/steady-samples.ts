import type { Samples } from "../../src/telemetry/sampled-metrics.ts";

/** A host on which nothing changes. */
export const steadySamples: Samples = {
  upstreamUp: async () => true,
  database: async () => ({ bytes: 4096, logBytes: 512 }),
  disk: async () => ({ freeBytes: 1e9, sizeBytes: 1e10 }),
};
