import { type RangePreset, readTimeRange, type TimeRange, type TimeSpan, zoomParameters } from "./time-range.ts";
import { useUrlParameters } from "./url-parameters.ts";

export type TimeRangeState = ReturnType<typeof useTimeRange>;

/**
 * The time range is part of the URL, so reload, Back and a shared link show the same data.
 * @param options the presets of the page; by default all
 */
export function useTimeRange(defaultPreset: RangePreset, options?: readonly { value: RangePreset; label: string }[]) {
  const [parameters, setParameters] = useUrlParameters<"range" | "from" | "to">();
  return {
    /** While it loads, the chart still shows the one before. */
    chosen: (): TimeRange => readTimeRange(parameters, defaultPreset, options),
    setPreset: (preset: RangePreset) =>
      setParameters({ range: preset === defaultPreset ? undefined : preset, ...zoomParameters(undefined) }),
    // Adds a history entry, so that Back leaves the zoom.
    setZoom: (zoom: TimeSpan | undefined) => setParameters(zoomParameters(zoom)),
  };
}
