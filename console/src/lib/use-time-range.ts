import { type RangePreset, readTimeRange, type TimeRange, type TimeSpan, zoomParameters } from "./time-range.ts";
import { useUrlParameters } from "./url-parameters.ts";

export interface TimeRangeState {
  /** While it loads, the chart still shows the one before. */
  chosen: () => TimeRange;
  setPreset: (preset: RangePreset) => void;
  setZoom: (zoom: TimeSpan | undefined) => void;
}

/**
 * The time range is part of the URL, so reload, Back and a shared link show the same data.
 * @param options the presets of the page; by default all
 */
export function useTimeRange(
  defaultPreset: RangePreset,
  options?: readonly { value: RangePreset; label: string }[],
): TimeRangeState {
  const [parameters, setParameters] = useUrlParameters<"range" | "from" | "to">();
  return {
    chosen: () => readTimeRange(parameters, defaultPreset, options),
    setPreset: (preset) =>
      setParameters({ range: preset === defaultPreset ? undefined : preset, ...zoomParameters(undefined) }),
    // Adds a history entry, so that Back leaves the zoom.
    setZoom: (zoom) => setParameters(zoomParameters(zoom)),
  };
}
