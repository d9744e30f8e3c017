import type { AdminDeps } from "../http/deps.ts";
import type { GpuSample } from "../../store/gpu/contract.ts";
import { dayOf, minuteOf, minutesPerDay, startOfDay, timestampOf } from "../../time/seoul.ts";
import { queueOf } from "../requests/queue.ts";
import type { OverviewBody } from "./contract.ts";
import { usageTotalBody } from "../usage/usage.ts";

const staleAfterMs = 120_000;

export const getOverview =
  ({ store, clock, inFlight, backendStates, catalog, running, separatePorts, upstreamUrl }: AdminDeps) =>
  async (): Promise<OverviewBody> => {
    const now = clock();
    const minute = minuteOf(now);
    const yesterdayStart = minuteOf(startOfDay(dayOf(now))) - minutesPerDay;
    const [today, yesterday, lastMinute, activeKeys, keysAtLimit, samples, runningRequests, states, all] =
      await Promise.all([
        store.usage.sumOfDay(dayOf(now)),
        // Includes the whole of its last minute, since today's current minute counts too.
        store.usage.sumOfMinutes(yesterdayStart, minute - minutesPerDay + 1),
        store.usage.sumOfMinutes(minute - 1, minute),
        store.keys.countActive(),
        store.limits.countAtLimit(),
        store.gpu.latest(),
        inFlight(),
        backendStates(),
        running(),
      ]);
    const gpus = samples.map((sample) => gpuStateBody(sample, now));
    return {
      now: timestampOf(now),
      today: usageTotalBody(today),
      yesterday: usageTotalBody(yesterday),
      last_minute: usageTotalBody(lastMinute),
      active_keys: activeKeys,
      keys_at_limit: keysAtLimit,
      in_flight: runningRequests,
      queue: queueOf(catalog(), states, all),
      separate_ports: separatePorts,
      gpus,
      power_draw_w: livePower(gpus),
      upstream_url: upstreamUrl,
    };
  };

type GpuState = OverviewBody["gpus"][number];

function gpuStateBody(sample: GpuSample, nowMs: number): GpuState {
  return {
    gpu_id: sample.gpuId,
    name: sample.name,
    recorded_at: timestampOf(sample.recordedAt),
    power_draw_w: sample.powerDrawW,
    utilization_pct: sample.utilizationPct,
    stale: nowMs - sample.recordedAt >= staleAfterMs,
  };
}

/** The sum over the GPUs that report; null if none does. */
function livePower(gpus: readonly GpuState[]): number | null {
  const powers = gpus.flatMap((gpu) => (gpu.stale || gpu.power_draw_w === null ? [] : [gpu.power_draw_w]));
  return powers.length === 0 ? null : powers.reduce((sum, power) => sum + power, 0);
}
