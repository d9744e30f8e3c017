import { type JSX, Show } from "solid-js";
import { compact } from "../lib/format.ts";

const barWidth = 2;
const barStep = 3;
const height = 20;

/** Bars as high as the largest, without axes. @param props.values undefined while they load, or without any */
export function Sparkline(props: { values: Float64Array | undefined; label: string }): JSX.Element {
  const values = (): number[] => [...(props.values ?? [])].slice(-24);
  const total = (): number => values().reduce((sum, value) => sum + value, 0);
  return (
    <Show when={total() > 0} fallback={<span class="sparkline faint" aria-hidden="true" />}>
      <svg
        class="sparkline"
        viewBox={`0 0 ${24 * barStep} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${props.label}: ${compact(total())} tokens in the last 24 hours`}
      >
        <title>{`${compact(total())} tokens in the last 24 hours`}</title>
        <path d={barsOf(values())} />
      </svg>
    </Show>
  );
}

/** An hour with any tokens is seen. */
function barsOf(values: readonly number[]): string {
  const most = Math.max(1, ...values);
  return values
    .map((value, index) => {
      if (value <= 0) return "";
      const bar = Math.max(1, (value / most) * height);
      return `M${index * barStep} ${height}v${-Math.round(bar * 10) / 10}h${barWidth}V${height}z`;
    })
    .join("");
}
