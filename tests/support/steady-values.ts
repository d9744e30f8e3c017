import type { SlowValues } from "../../src/telemetry/slow-gauges.ts";

/** A host on which nothing changes. */
export const steadyValues: SlowValues = {
  upstreamUp: async () => true,
  database: async () => ({ bytes: 4096, logBytes: 512 }),
  disk: async () => ({ freeBytes: 1e9, sizeBytes: 1e10 }),
  backup: async () => 1.7e12,
};
