import { createMemo, createSignal, onCleanup, onMount } from "solid-js";
import { barStep, type TimeSpan } from "../lib/time-range.ts";
import type { ChartKind } from "./marks.tsx";
import { valueTicks } from "./scale.ts";
import { type Plot, type Series, sharesOf, stepSums } from "./shapes.ts";

/** Space for the axes, pixels. */
export const gutter = { left: 52, right: 8, top: 12, bottom: 26 };

interface GeometryOptions {
  span: () => TimeSpan;
  bucketMs: () => number;
  kind: () => ChartKind;
  whole: () => boolean;
  /** The series in steps of `stepMs`. */
  seriesIn: (stepMs: number) => Series[];
  /** Whether a value is drawn. */
  isData: (value: number) => boolean;
  frame: () => Element | undefined;
}

export type Geometry = ReturnType<typeof createGeometry>;

/** Derives a chart's scales from its size, span and data. */
export function createGeometry(options: GeometryOptions) {
  const size = createSize(options.frame);
  const widthPx = (): number => Math.max(0, size().width - gutter.left - gutter.right);
  const heightPx = (): number => Math.max(0, size().height - gutter.top - gutter.bottom);
  const stepMs = createMemo(() => barStep(options.span(), options.bucketMs(), widthPx()));
  /** The number of steps. */
  const length = createMemo(() => Math.ceil((options.span().to - options.span().from) / stepMs()));
  const series = createMemo(() => {
    if (widthPx() === 0) return [];
    const values = options.seriesIn(stepMs());
    return options.kind() === "shares" ? sharesOf(values, length()) : values;
  });
  const ticks = createMemo(() => valueTicks(highest(options.kind(), series(), length()), options.whole()));
  const plot = createMemo((): Plot => ({ widthPx: widthPx(), heightPx: heightPx(), top: ticks().at(-1) || 1 }));
  const hasData = createMemo(() => series().some(({ values }) => values.some(options.isData)));
  return {
    width: () => size().width,
    height: () => size().height,
    plotWidth: widthPx,
    stepMs,
    length,
    stepPx: () => widthPx() / length(),
    series,
    ticks,
    plot,
    hasData,
  };
}

function createSize(element: () => Element | undefined): () => { width: number; height: number } {
  const [size, setSize] = createSignal({ width: 0, height: 0 });
  onMount(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setSize({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    const observed = element();
    if (observed === undefined) return;
    // The observer calls back only once the page is painted, and never in a hidden tab.
    setSize({ width: observed.clientWidth, height: observed.clientHeight });
    observer.observe(observed);
    onCleanup(() => observer.disconnect());
  });
  return size;
}

/** The value that the axis has to reach. */
function highest(kind: ChartKind, series: readonly Series[], length: number): number {
  if (kind === "shares") return series.length === 0 ? 0 : 100;
  if (kind === "bars") return largest(stepSums(series, length));
  return series.reduce((most, { values }) => Math.max(most, largest(values)), 0);
}

const largest = (values: Float64Array): number => values.reduce((most, value) => (value > most ? value : most), 0);
