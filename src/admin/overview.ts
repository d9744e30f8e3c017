import type { WallClock } from "../time/clock.ts";
import { dayOf, minuteOf, minutesPerDay, startOfDay, timestampOf } from "../time/seoul.ts";
import type { GpuSample, Store } from "../store/store.ts";
import type { Health } from "./health.ts";
import type { OverviewBody } from "./schemas.ts";
import { usageTotal } from "./usage.ts";

const staleAfterMs = 120_000;

export interface OverviewDeps {
  store: Pick<Store, "usage" | "keys" | "gpu">;
  clock: WallClock;
  operations: Pick<Health, "upstream">;
  inFlight: () => Promise<number>;
  separatePorts: boolean;
}

export async function getOverview(deps: OverviewDeps): Promise<OverviewBody> {
  const { store, clock, operations, inFlight, separatePorts } = deps;
  const now = clock();
  const minute = minuteOf(now);
  const yesterdayStart = minuteOf(startOfDay(dayOf(now))) - minutesPerDay;
  const [today, yesterday, lastMinute, activeKeys, samples, upstream, runningRequests] = await Promise.all([
    store.usage.sumOfDay(dayOf(now)),
    // Its last minute is a whole one, as today's is about to be.
    store.usage.sumOfMinutes(yesterdayStart, minute - minutesPerDay + 1),
    store.usage.sumOfMinutes(minute - 1, minute),
    store.keys.countActive(),
    store.gpu.latest(),
    operations.upstream(),
    inFlight(),
  ]);
  const gpus = samples.map((sample) => gpuNow(sample, now));
  return {
    now: timestampOf(now),
    today: usageTotal(today),
    yesterday: usageTotal(yesterday),
    last_minute: usageTotal(lastMinute),
    active_keys: activeKeys,
    in_flight: runningRequests,
    separate_ports: separatePorts,
    gpus,
    power_draw_w: livePower(gpus),
    upstream: { ok: upstream.ok, checked_at: timestampOf(upstream.checkedAt) },
  };
}

type GpuNow = OverviewBody["gpus"][number];

function gpuNow(sample: GpuSample, nowMs: number): GpuNow {
  return {
    gpu_id: sample.gpuId,
    name: sample.name,
    recorded_at: timestampOf(sample.recordedAt),
    power_draw_w: sample.powerDrawW,
    utilization_pct: sample.utilizationPct,
    stale: nowMs - sample.recordedAt >= staleAfterMs,
  };
}

/** What a silent GPU drew last is no news of now. */
function livePower(gpus: readonly GpuNow[]): number | null {
  const powers = gpus.flatMap((gpu) => (gpu.stale || gpu.power_draw_w === null ? [] : [gpu.power_draw_w]));
  return powers.length === 0 ? null : powers.reduce((sum, power) => sum + power, 0);
}
