import { createMemo, For, type JSX, Show } from "solid-js";
import { brokenLine, type Plot, type Series, stackedBars } from "./shapes.ts";

/** `line` has the area under it filled; `lines` are several. `bars` and `shares` are stacked. */
export type ChartKind = "bars" | "shares" | "lines" | "line";

interface MarksProps {
  kind: ChartKind;
  series: readonly Series[];
  /** The number of steps. */
  length: number;
  plot: Plot;
}

/** One path per series: the layout of thousands of rectangles would take longer than drawing them. */
export function Marks(props: MarksProps): JSX.Element {
  return (
    <Show
      when={props.kind === "bars" || props.kind === "shares"}
      fallback={<Lines series={props.series} plot={props.plot} filled={props.kind === "line"} />}
    >
      <Bars {...props} />
    </Show>
  );
}

function Bars(props: Pick<MarksProps, "series" | "length" | "plot">): JSX.Element {
  const paths = createMemo(() => stackedBars(props.series, props.length, props.plot));
  return (
    <For each={paths()}>
      {(path, index) => <path class={`fill series-${props.series[index()]?.colour ?? 0}`} d={path} />}
    </For>
  );
}

function Lines(props: Pick<MarksProps, "series" | "plot"> & { filled: boolean }): JSX.Element {
  return (
    <For each={props.series}>
      {({ values, colour }) => {
        const shape = createMemo(() => brokenLine(values, props.plot));
        return (
          <>
            <Show when={props.filled}>
              <path class={`area series-${colour}`} d={shape().area} />
            </Show>
            <path class={`line series-${colour}`} d={shape().line} />
          </>
        );
      }}
    </For>
  );
}
