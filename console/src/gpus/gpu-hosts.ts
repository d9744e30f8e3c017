import type { Gpu } from "./queries.ts";

/** Two hosts that send the same GPU ids. */
export function listSharedIds(gpus: readonly Gpu[]) {
  const shared = gpus.flatMap(({ gpu_id, host, other_host }) =>
    host === null || other_host === null ? [] : [{ gpu_id, hosts: [host, other_host].toSorted().join(" and ") }],
  );
  return [...Map.groupBy(shared, ({ hosts }) => hosts)].map(([hosts, members]) => ({
    hosts,
    gpuIds: members.map(({ gpu_id }) => gpu_id),
  }));
}

const maxGpuId = 255;
/** Most hosts have at most so many GPUs. */
const offsetStep = 8;

/** The first multiple of eight above all ids; undefined if there is none up to 255. */
export function findFreeOffset(gpus: readonly Pick<Gpu, "gpu_id">[]): number | undefined {
  const highest = gpus.reduce((most, { gpu_id }) => Math.max(most, gpu_id), -1);
  const offset = Math.ceil((highest + 1) / offsetStep) * offsetStep;
  return offset <= maxGpuId ? offset : undefined;
}
