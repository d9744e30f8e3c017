import { asc } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { type Engine, joinSlices } from "../engine/engine.ts";
import { gpuSlices, powerSlices, totalSlices } from "./history.ts";
import { prepareGpuIngest, recordedAtOf, sharedGpuMs } from "./ingest.ts";
import type { GpuStore } from "./contract.ts";

export function createGpuStore(engine: Engine, clock: WallClock): GpuStore {
  const { db, tables, transaction } = engine;
  const { gpuLatest } = tables;
  const ingest = prepareGpuIngest(engine);
  const latest = db.select().from(gpuLatest).orderBy(asc(gpuLatest.gpuId)).prepare();

  return {
    add: (push) => transaction(() => ingest(push)),
    async latest() {
      const [rows, now] = [await latest.execute(), clock()];
      return rows.map(({ hostChangedAt, otherHost, ...row }) => {
        const isShared = hostChangedAt !== null && now - hostChangedAt < sharedGpuMs;
        return Object.assign(row, { recordedAt: recordedAtOf(row.id), otherHost: isShared ? otherHost : null });
      });
    },
    powerHistory: (range) => joinSlices(powerSlices(engine, range)),
    history: (range, gpuId) =>
      joinSlices(gpuId === undefined ? totalSlices(engine, range) : gpuSlices(engine, range, gpuId, clock())),
  };
}
