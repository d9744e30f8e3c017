import { createMemo, createSignal, createUniqueId, For, type JSX, onCleanup, onMount, Show } from "solid-js";
import { spanLabel } from "../../seoul-time.ts";
import type { Span } from "../../view.ts";
import { barStep, timeTicks, valueTicks } from "./scale.ts";
import { brokenLine, type Plot, type Series, stackedBars, stepSums, yOf } from "./shapes.ts";

export interface TooltipRow {
  label: string;
  colour: number;
  value: string;
}

export interface ChartProps {
  /** What it shows, for who cannot see it. */
  label: string;
  /** The data in a sentence or two. */
  summary: string;
  span: Span;
  bucketMs: number;
  kind: "bars" | "line";
  /** The series in steps of this many milliseconds from the span's start; a NaN is a gap. */
  series: (stepMs: number) => Series[];
  format: (value: number) => string;
  /** Whether only whole values make sense on the axis. */
  whole: boolean;
  /** What the tooltip says of one step. */
  rows: (at: Span, series: readonly Series[], step: number) => TooltipRow[];
  onZoom: (zoom: Span | undefined) => void;
  zoomed: boolean;
  loading: boolean;
  /** Shown in place of bars where there is nothing to draw. */
  empty?: JSX.Element;
}

const gutter = { left: 52, right: 8, top: 12, bottom: 26 };
const minDragPx = 6;

/** Bars or a line over time. Drag, or Shift and the arrow keys, to look closer. */
export function Chart(props: ChartProps): JSX.Element {
  const [size, setSize] = createSignal({ width: 0, height: 0 });
  const [cursor, setCursor] = createSignal<number>();
  const [anchor, setAnchor] = createSignal<number>();
  const summaryId = createUniqueId();
  let frame: HTMLDivElement | undefined;

  onMount(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setSize({ width: entry.contentRect.width, height: entry.contentRect.height });
    });
    if (frame !== undefined) observer.observe(frame);
    onCleanup(() => observer.disconnect());
  });

  const widthPx = (): number => Math.max(0, size().width - gutter.left - gutter.right);
  const heightPx = (): number => Math.max(0, size().height - gutter.top - gutter.bottom);
  const stepMs = createMemo(() => barStep(props.span, props.bucketMs, widthPx()));
  const length = createMemo(() => Math.ceil((props.span.to - props.span.from) / stepMs()));
  const series = createMemo(() => (widthPx() === 0 ? [] : props.series(stepMs())));
  const sums = createMemo(() => stepSums(series(), length()));
  const ticks = createMemo(() => valueTicks(largest(sums()), props.whole));
  const plot = createMemo<Plot>(() => ({ widthPx: widthPx(), heightPx: heightPx(), top: ticks().at(-1) || 1 }));
  const hasData = createMemo(() => series().some(({ values }) => values.some((value) => value > 0)));
  const stepPx = (): number => widthPx() / length();

  const spanOf = (from: number, to: number): Span => ({
    from: props.span.from + Math.min(from, to) * stepMs(),
    to: Math.min(props.span.from + (Math.max(from, to) + 1) * stepMs(), props.span.to),
  });
  const selection = (): Span | undefined => {
    const [from, to] = [anchor(), cursor()];
    return from === undefined || to === undefined || from === to ? undefined : spanOf(from, to);
  };
  const stepAt = (event: PointerEvent): number => {
    const left = (frame?.getBoundingClientRect().left ?? 0) + gutter.left;
    return clamp(Math.floor((event.clientX - left) / stepPx()), 0, length() - 1);
  };
  const zoomToSelection = (): void => {
    const selected = selection();
    setAnchor(undefined);
    if (selected === undefined) return;
    setCursor(undefined);
    props.onZoom(selected);
  };

  let pressedX = 0;
  const onPointerDown = (event: PointerEvent): void => {
    // Capturing the pointer would swallow the click on what an empty chart offers.
    if (event.button !== 0 || !hasData()) return;
    pressedX = event.clientX;
    setCursor(stepAt(event));
    setAnchor(stepAt(event));
    frame?.setPointerCapture(event.pointerId);
  };
  const onPointerUp = (event: PointerEvent): void => {
    if (Math.abs(event.clientX - pressedX) < minDragPx) setAnchor(undefined);
    zoomToSelection();
  };
  const leave = (): void => {
    setAnchor(undefined);
    setCursor(undefined);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = cursor() ?? length() - 1;
    const page = Math.max(1, Math.round(length() / 10));
    const moves: Record<string, number> = {
      ArrowLeft: cursor() === undefined ? at : at - 1,
      ArrowRight: at + 1,
      PageUp: at - page,
      PageDown: at + page,
      Home: 0,
      End: length() - 1,
    };
    const target = moves[event.key];
    if (target !== undefined) {
      if (event.shiftKey) setAnchor((begun) => begun ?? at);
      else setAnchor(undefined);
      setCursor(clamp(target, 0, length() - 1));
    } else if (event.key === "Enter" && selection() !== undefined) zoomToSelection();
    else if (event.key === "Escape" && cursor() !== undefined) leave();
    else if (event.key === "Escape" && props.zoomed) props.onZoom(undefined);
    else return;
    event.preventDefault();
  };

  const paths = createMemo(() =>
    props.kind === "bars"
      ? stackedBars(series(), length(), plot()).map((path, index) => ({ path, colour: series()[index]?.colour ?? 0 }))
      : [],
  );
  const lines = createMemo(() =>
    props.kind === "line" ? series().map(({ values, colour }) => ({ path: brokenLine(values, plot()), colour })) : [],
  );

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
      classList={{ loading: props.loading, selecting: anchor() !== undefined }}
      onPointerDown={onPointerDown}
      onPointerMove={(event) => setCursor(stepAt(event))}
      onPointerUp={onPointerUp}
      onPointerCancel={leave}
      onPointerLeave={() => anchor() === undefined && leave()}
      onBlur={leave}
      onKeyDown={onKeyDown}
    >
      <svg aria-hidden="true" width={size().width} height={size().height}>
        <g transform={`translate(${gutter.left} ${gutter.top})`}>
          <For each={ticks()}>
            {(tick) => (
              <g class="y-tick" transform={`translate(0 ${yOf(tick, plot())})`}>
                <line x2={widthPx()} />
                <text x="-10" dy="0.32em">
                  {props.format(tick)}
                </text>
              </g>
            )}
          </For>
          <For each={timeTicks(props.span, widthPx())}>
            {(tick) => (
              <text class="x-tick" x={xOf(tick.at, props.span, widthPx())} y={heightPx() + 18}>
                {tick.label}
              </text>
            )}
          </For>
          <For each={paths()}>{(bar) => <path class={`fill series-${bar.colour}`} d={bar.path} />}</For>
          <For each={lines()}>
            {(drawn) => (
              <>
                <path class={`area series-${drawn.colour}`} d={drawn.path.area} />
                <path class={`line series-${drawn.colour}`} d={drawn.path.line} />
              </>
            )}
          </For>
          <Show when={selection()}>
            {(selected) => (
              <rect
                class="selection"
                x={xOf(selected().from, props.span, widthPx())}
                width={xOf(selected().to, props.span, widthPx()) - xOf(selected().from, props.span, widthPx())}
                height={heightPx()}
              />
            )}
          </Show>
          <Show when={cursor()}>
            {(step) => <rect class="crosshair" x={step() * stepPx()} width={stepPx()} height={heightPx()} />}
          </Show>
        </g>
      </svg>
      <p id={summaryId} class="visually-hidden">
        {props.summary} Arrow keys move along the chart; hold Shift to select, then Enter to zoom; Escape resets.
      </p>
      <Show when={!props.loading && !hasData() && props.empty}>
        <div class="chart-empty">{props.empty}</div>
      </Show>
      <Tooltip
        x={gutter.left + ((cursor() ?? 0) + 0.5) * stepPx()}
        frameWidth={size().width}
        span={cursor() === undefined ? undefined : (selection() ?? spanOf(cursor() ?? 0, cursor() ?? 0))}
        selecting={selection() !== undefined}
        rows={cursor() === undefined ? [] : props.rows(spanOf(cursor() ?? 0, cursor() ?? 0), series(), cursor() ?? 0)}
      />
    </div>
  );
}

interface TooltipProps {
  x: number;
  frameWidth: number;
  span: Span | undefined;
  selecting: boolean;
  rows: TooltipRow[];
}

function Tooltip(props: TooltipProps): JSX.Element {
  const beyondMiddle = (): boolean => props.x > props.frameWidth / 2;
  return (
    <div
      class="tooltip"
      aria-live="polite"
      hidden={props.span === undefined}
      classList={{ before: beyondMiddle() }}
      style={{ "--x": `${props.x}px` }}
    >
      <p class="tooltip-time">{props.span && spanLabel(props.span.from, props.span.to)}</p>
      <Show when={!props.selecting} fallback={<p class="faint">Release to zoom</p>}>
        <ul>
          <For each={props.rows} fallback={<li class="faint">Nothing</li>}>
            {(row) => (
              <li>
                <span class={`swatch series-${row.colour}`} />
                <span class="name">{row.label}</span>
                <span class="value">{row.value}</span>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </div>
  );
}

const clamp = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

const largest = (values: Float64Array): number => values.reduce((most, value) => Math.max(most, value), 0);

const xOf = (at: number, span: Span, widthPx: number): number => ((at - span.from) / (span.to - span.from)) * widthPx;
