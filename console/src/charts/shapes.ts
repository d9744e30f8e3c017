export interface Series {
  id: number | string;
  label: string;
  /** A colour number of `styles/tokens.css`; 0 is the grey of Other. */
  colour: number;
  values: Float64Array;
}

export interface Plot {
  widthPx: number;
  heightPx: number;
  /** The value at the top edge. */
  top: number;
}

/** The sum of each step over all series. */
export function stepSums(series: readonly Series[], length: number): Float64Array {
  const sums = new Float64Array(length);
  for (const { values } of series) {
    for (let step = 0; step < length; step++) sums[step] = (sums[step] ?? 0) + (values[step] || 0);
  }
  return sums;
}

/** Percent of each step's sum. */
export function sharesOf(series: readonly Series[], length: number): Series[] {
  const sums = stepSums(series, length);
  return series.map((one) => ({
    ...one,
    values: one.values.map((value, step) => (value > 0 ? (100 * value) / (sums[step] ?? 1) : 0)),
  }));
}

/** Between stacked series, so that neighbours are told apart by more than their colours. */
const separatorPx = 1;

/** One SVG path per series, stacked in order. A step without a value draws nothing. */
export function stackedBars(series: readonly Series[], length: number, plot: Plot): string[] {
  const stepPx = plot.widthPx / length;
  const barPx = Math.max(1, stepPx - (stepPx >= 12 ? 2 : stepPx >= 5 ? 1 : 0.5));
  const base = new Float64Array(length);
  return series.map(({ values }) => {
    let path = "";
    for (let step = 0; step < length; step++) {
      const value = values[step] ?? 0;
      if (!(value > 0)) continue;
      const bottom = base[step] ?? 0;
      base[step] = bottom + value;
      const y = yOf(bottom + value, plot);
      const fullPx = yOf(bottom, plot) - y;
      const heightPx = bottom > 0 && fullPx >= 2 * separatorPx ? fullPx - separatorPx : fullPx;
      path += `M${px(step * stepPx)} ${px(y)}h${px(barPx)}v${px(heightPx)}h${px(-barPx)}z`;
    }
    return path;
  });
}

/** A line and the area under it, both interrupted at steps without a value. */
export function brokenLine(values: Float64Array, plot: Plot): { line: string; area: string } {
  const stepPx = plot.widthPx / values.length;
  let line = "";
  let area = "";
  for (const [from, to] of runs(values)) {
    const points = Array.from(values.slice(from, to), (value, index) => {
      return `${px((from + index + 0.5) * stepPx)} ${px(yOf(value, plot))}`;
    });
    // A single value cannot form a line; it is drawn as a dash as wide as its step.
    const run =
      to - from === 1
        ? `M${px(from * stepPx)} ${px(yOf(values[from] ?? 0, plot))}h${px(stepPx)}`
        : `M${points.join("L")}`;
    line += run;
    if (to - from > 1) {
      area += `${run}L${px((to - 0.5) * stepPx)} ${px(plot.heightPx)}L${px((from + 0.5) * stepPx)} ${px(plot.heightPx)}z`;
    }
  }
  return { line, area };
}

/** The ranges of consecutive steps with a value. */
function runs(values: Float64Array): [from: number, to: number][] {
  const found: [number, number][] = [];
  let from = -1;
  for (let step = 0; step <= values.length; step++) {
    const hasValue = step < values.length && !Number.isNaN(values[step]);
    if (hasValue && from < 0) from = step;
    if (!hasValue && from >= 0) {
      found.push([from, step]);
      from = -1;
    }
  }
  return found;
}

export const yOf = (value: number, plot: Plot): number => plot.heightPx * (1 - value / plot.top);

/** Rounding to a tenth of a pixel keeps paths short and is not visible. */
const px = (value: number): string => String(Math.round(value * 10) / 10);
