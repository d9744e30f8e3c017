// Draws series over time, as bars or a line. It knows neither features nor queries, nor what is counted.
//
// It keeps true: a step is whole buckets, as many as the width has room for (`geometry.ts`); NaN is a gap. Mouse, touch
// and keyboard move one cursor (`cursor.ts`). A zoom is asked for, and kept by whoever draws the chart.

import { createComputed, createUniqueId, type JSX, Show } from "solid-js";
import type { TimeSpan } from "../lib/time-range.ts";
import { Axes } from "./axes.tsx";
import { createCursor, type Cursor } from "./cursor.ts";
import { createGeometry, type Geometry, gutter } from "./geometry.ts";
import { type ChartKind, Marks } from "./marks.tsx";
import { xOf } from "./scale.ts";
import type { Series } from "./shapes.ts";
import { Tooltip, type TooltipRow } from "./tooltip.tsx";

interface ChartProps {
  /** What the chart shows, for screen readers. */
  label: string;
  /** The data in a sentence or two. */
  summary: string;
  span: TimeSpan;
  bucketMs: number;
  kind: ChartKind;
  /** The series in steps of `stepMs` from the span's start; NaN is a gap. */
  series: (stepMs: number) => Series[];
  format: (value: number) => string;
  /** Whether the axis has only whole values. */
  whole: boolean;
  /** The tooltip's rows for one step. */
  rows: (at: TimeSpan, series: readonly Series[], step: number) => TooltipRow[];
  onZoom?: (zoom: TimeSpan | undefined) => void;
  /** Left out where a zoom is another page's: then a sideways drag on a touch screen does not move the span. */
  zoomed?: boolean;
  /** Whether there is data to draw, even if it is older than what loads. */
  loaded: boolean;
  loading: boolean;
  /** Called with the width of the plot, pixels, at first and after each change. */
  onPlotWidth?: (widthPx: number) => void;
  /** In place of data that could not be loaded. */
  failure?: JSX.Element;
  /** Shown if there is nothing to draw. */
  empty?: JSX.Element;
}

/** Bars or a line over time. Dragging, or Shift with the arrow keys and Enter, zooms. */
export function Chart(props: ChartProps): JSX.Element {
  const summaryId = createUniqueId();
  let frame: HTMLDivElement | undefined;
  const geometry = createGeometry({
    span: () => props.span,
    bucketMs: () => props.bucketMs,
    kind: () => props.kind,
    whole: () => props.whole,
    seriesIn: (stepMs) => props.series(stepMs),
    // A power of 0 W is data, drawn as a line; a usage of 0 is not.
    isData: (value) => (props.kind === "line" ? !Number.isNaN(value) : value > 0),
    frame: () => frame,
  });
  createComputed(() => geometry.plotWidth() > 0 && props.onPlotWidth?.(geometry.plotWidth()));
  const stepAt = (clientX: number): number => {
    const left = (frame?.getBoundingClientRect().left ?? 0) + gutter.left;
    return Math.min(Math.max(Math.floor((clientX - left) / geometry.stepPx()), 0), geometry.length() - 1);
  };
  const cursor = createCursor({
    ...geometry,
    span: () => props.span,
    stepAt,
    zoomed: () => props.zoomed,
    onZoom: (zoom) => props.onZoom?.(zoom),
  });

  return (
    <div
      class="chart"
      ref={frame}
      tabindex="0"
      role="group"
      aria-roledescription="chart"
      aria-label={props.label}
      aria-describedby={summaryId}
      aria-busy={props.loading}
      classList={{ loading: props.loading }}
      onPointerDown={cursor.onPointerDown}
      onPointerMove={cursor.onPointerMove}
      onPointerUp={cursor.onPointerUp}
      onPointerCancel={cursor.onPointerCancel}
      onPointerLeave={cursor.onPointerLeave}
      onBlur={cursor.clear}
      onKeyDown={cursor.onKeyDown}
    >
      <Show when={props.loaded} fallback={<NotDrawn {...props} summaryId={summaryId} />}>
        <ChartDrawing {...props} geometry={geometry} cursor={cursor} />
        <p id={summaryId} class="visually-hidden">
          {props.summary} The arrow keys move along the chart. Hold Shift to select and press Enter to zoom. Escape
          resets.
        </p>
        <Show when={!geometry.hasData() && props.empty}>
          <div class="chart-empty">{props.empty}</div>
        </Show>
        <ChartTooltip {...props} geometry={geometry} cursor={cursor} />
        <Show when={geometry.hasData()}>
          <ZoomButtons zoom={cursor.zoomBy} zoomed={props.zoomed} />
        </Show>
      </Show>
    </div>
  );
}

/** Without data there is no axis: its values would be invented. */
function NotDrawn(props: ChartProps & { summaryId: string }): JSX.Element {
  return (
    <Show
      when={!props.loading}
      fallback={
        <div class="chart-empty">
          <div class="chart-skeleton" aria-hidden="true" />
          <p id={props.summaryId} class="visually-hidden">
            Loading
          </p>
        </div>
      }
    >
      <div class="chart-empty" id={props.summaryId}>
        {props.failure}
      </div>
    </Show>
  );
}

interface ChartParts {
  geometry: Geometry;
  cursor: Cursor;
}

function ChartDrawing(props: ChartProps & ChartParts): JSX.Element {
  const width = (): number => props.geometry.plot().widthPx;
  return (
    <svg
      aria-hidden="true"
      width={props.geometry.width()}
      height={props.geometry.height()}
      viewBox={`0 0 ${props.geometry.width()} ${props.geometry.height()}`}
    >
      <g transform={`translate(${gutter.left} ${gutter.top})`}>
        <Axes span={props.span} plot={props.geometry.plot()} ticks={props.geometry.ticks()} format={props.format} />
        <svg
          class="plot"
          classList={{ panning: props.cursor.panPx() !== 0 }}
          width={width()}
          height={props.geometry.plot().heightPx}
        >
          <g transform={`translate(${props.cursor.panPx()} 0)`}>
            <Marks
              kind={props.kind}
              series={props.geometry.series()}
              length={props.geometry.length()}
              plot={props.geometry.plot()}
            />
          </g>
        </svg>
        <Show when={props.cursor.selection()}>
          {(selected) => (
            <rect
              class="selection"
              x={xOf(selected().from, props.span, width())}
              width={xOf(selected().to, props.span, width()) - xOf(selected().from, props.span, width())}
              height={props.geometry.plot().heightPx}
            />
          )}
        </Show>
        <Show when={props.cursor.step() !== undefined}>
          <rect
            class="crosshair"
            x={(props.cursor.step() ?? 0) * props.geometry.stepPx()}
            width={props.geometry.stepPx()}
            height={props.geometry.plot().heightPx}
          />
        </Show>
      </g>
    </svg>
  );
}

function ChartTooltip(props: ChartProps & ChartParts): JSX.Element {
  const pointed = (): { step: number; span: TimeSpan } | undefined => {
    const step = props.cursor.step();
    return step === undefined ? undefined : { step, span: props.cursor.spanOf(step, step) };
  };
  const rows = (): TooltipRow[] => {
    const at = pointed();
    return at === undefined ? [] : props.rows(at.span, props.geometry.series(), at.step);
  };
  return (
    <Tooltip
      x={gutter.left + ((pointed()?.step ?? 0) + 0.5) * props.geometry.stepPx()}
      chartWidth={props.geometry.width()}
      span={props.cursor.selection() ?? pointed()?.span}
      selecting={props.cursor.selection() !== undefined}
      rows={rows()}
    />
  );
}

/** Zooms on touch screens, on which a drag does not. @param props.zoom takes the factor of the length of the span */
function ZoomButtons(props: { zoom: (factor: number) => void; zoomed: boolean | undefined }): JSX.Element {
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
