import type { Log } from "../../log/log.ts";
import type { SharedGpu } from "../../store/gpu/contract.ts";
import type { WallClock } from "../../time/clock.ts";

/** Whoever has a key chooses the names of hosts, and must not fill the log or the memory with them. */
const minIntervalMs = 60_000;
const maxPairs = 100;

/** Logs the GPUs that two hosts send: once for each pair of hosts, and again if their GPUs change. */
export function createSharedGpuLog(log: Log, clock: WallClock): (shared: readonly SharedGpu[]) => void {
  const logged = new Map<string, string>();
  let loggedAt = -Infinity;

  return (shared) => {
    for (const [hosts, gpus] of Map.groupBy(shared, (gpu) => gpu.hosts.toSorted().join(", "))) {
      const gpuIds = gpus.map(({ gpuId }) => gpuId).join(", ");
      if (logged.get(hosts) === gpuIds || Math.abs(clock() - loggedAt) < minIntervalMs) continue;
      loggedAt = clock();
      if (logged.size === maxPairs) logged.clear();
      logged.set(hosts, gpuIds);
      log.warn("Two hosts send the same GPU ids; set --gpu-id-offset on one of them", { hosts, gpuIds });
    }
  };
}
