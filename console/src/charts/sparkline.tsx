import { type JSX, Show } from "solid-js";

const barWidth = 2;
const barStep = 3;
const height = 20;

/** Bars as high as the largest, without axes. @param props.values undefined while they load, or without any */
export function Sparkline(props: {
  values: ArrayLike<number> | undefined;
  label: string;
  /** In words, by their sum. */
  says: (total: number) => string;
}): JSX.Element {
  const values = (): number[] => Array.from(props.values ?? []).slice(-24);
  const total = (): number => values().reduce((sum, value) => sum + value, 0);
  return (
    <Show when={total() > 0} fallback={<span class="sparkline faint" aria-hidden="true" />}>
      <svg
        class="sparkline"
        viewBox={`0 0 ${values().length * barStep} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${props.label}: ${props.says(total())}`}
      >
        <title>{props.says(total())}</title>
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
