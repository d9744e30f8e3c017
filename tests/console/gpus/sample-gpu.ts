import type { Gpu } from "../../../console/src/gpus/queries.ts";

export const sampleGpu = (fields: Partial<Gpu> = {}): Gpu => ({
  id: 1,
  gpu_id: 0,
  name: "GPU",
  recorded_at: "2026-11-21T10:00:00.000+09:00",
  power_draw_w: 100,
  temp_c: 50,
  memory_used_mb: 10,
  memory_total_mb: 20,
  utilization_pct: 40,
  host: null,
  other_host: null,
  ...fields,
});
