import type { JSX } from "solid-js";

/** For touch screens, on which a drag does not zoom. @param props.zoom takes the factor of the length of the span */
export function ZoomButtons(props: { zoom: (factor: number) => void; zoomed: boolean }): JSX.Element {
  return (
    // The chart would take a press on a button for one on itself.
    <div class="chart-zoom" onPointerDown={(event) => event.stopPropagation()}>
      <button class="icon-button" type="button" aria-label="Zoom in" onClick={() => props.zoom(0.5)}>
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M8 3v10M3 8h10" />
        </svg>
      </button>
      <button
        class="icon-button"
        type="button"
        aria-label="Zoom out"
        disabled={!props.zoomed}
        onClick={() => props.zoom(2)}
      >
        <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
          <path d="M3 8h10" />
        </svg>
      </button>
    </div>
  );
}
