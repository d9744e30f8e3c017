import { createMemo } from "solid-js";
import { formatGpuSort, type GpuSort, parseGpuSort } from "./gpu-sort.ts";
import { type GpuState, gpuStates } from "./gpu-state.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";

/** The filter and the sort of the GPU table. Both are part of the URL. */
export interface GpuFilters {
  state: () => GpuState;
  gpuSort: () => GpuSort;
  setState: (state: GpuState) => void;
  setGpuSort: (sort: GpuSort) => void;
}

export function useGpuFilters(): GpuFilters {
  const [parameters, setParameters] = useUrlParameters<"state" | "sort">();
  const gpuSort = createMemo(() => parseGpuSort(parameters.sort));
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    state: () => gpuStates.find((known) => known === parameters.state) ?? "all",
    gpuSort,
    setState: (chosen) => replace({ state: chosen === "all" ? undefined : chosen }),
    setGpuSort: (next) => replace({ sort: formatGpuSort(next) }),
  };
}
