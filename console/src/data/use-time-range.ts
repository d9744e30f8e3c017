import { useSearchParams } from "@solidjs/router";
import { type RangePreset, readTimeRange, type TimeSpan, type TimeRange, zoomParameters } from "./time-range.ts";

export interface TimeRangeState {
  timeRange: () => TimeRange;
  setPreset: (preset: RangePreset) => void;
  setZoom: (zoom: TimeSpan | undefined) => void;
}

/** Range and zoom live in the address: a reload, the back button and a link to a colleague show the same. */
export function useTimeRange(defaultPreset: RangePreset): TimeRangeState {
  const [parameters, setParameters] = useSearchParams();
  return {
    timeRange: () => readTimeRange(parameters, defaultPreset),
    setPreset: (preset) =>
      setParameters({ range: preset === defaultPreset ? undefined : preset, ...zoomParameters(undefined) }),
    // A step of its own in the history, so that Back leads out of a zoom.
    setZoom: (zoom) => setParameters(zoomParameters(zoom)),
  };
}
