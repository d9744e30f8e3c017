import { createMemo, For, type JSX, Show } from "solid-js";
import { brokenLine, type Plot, type Series, stackedBars } from "./shapes.ts";

interface MarksProps {
  kind: "bars" | "line";
  series: readonly Series[];
  /** The number of steps. */
  length: number;
  plot: Plot;
}

/** One path per series: the layout of thousands of rectangles would take longer than drawing them. */
export function Marks(props: MarksProps): JSX.Element {
  return (
    <Show when={props.kind === "bars"} fallback={<Lines series={props.series} plot={props.plot} />}>
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

function Lines(props: Pick<MarksProps, "series" | "plot">): JSX.Element {
  return (
    <For each={props.series}>
      {({ values, colour }) => {
        const shape = createMemo(() => brokenLine(values, props.plot));
        return (
          <>
            <path class={`area series-${colour}`} d={shape().area} />
            <path class={`line series-${colour}`} d={shape().line} />
          </>
        );
      }}
    </For>
  );
}
