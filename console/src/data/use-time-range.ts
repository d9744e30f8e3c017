import { useSearchParams } from "@solidjs/router";
import { type Range, readView, type Span, type View, zoomParameters } from "./time-range.ts";

export interface ViewControl {
  view: () => View;
  setRange: (range: Range) => void;
  setZoom: (zoom: Span | undefined) => void;
}

/** Range and zoom live in the address: a reload, the back button and a link to a colleague show the same. */
export function useView(otherwise: Range): ViewControl {
  const [parameters, setParameters] = useSearchParams();
  return {
    view: () => readView(parameters, otherwise),
    setRange: (range) =>
      setParameters({ range: range === otherwise ? undefined : range, ...zoomParameters(undefined) }),
    // A step of its own in the history, so that Back leads out of a zoom.
    setZoom: (zoom) => setParameters(zoomParameters(zoom)),
  };
}
