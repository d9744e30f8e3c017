import type { JSX } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import { compact, count } from "../lib/format.ts";
import type { OwnKey } from "./own-key.ts";
import { dayMs, floorToStep } from "../lib/seoul-time.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { add, valuesInSteps } from "../lib/time-steps.ts";
import { EmptyState } from "../ui/panel.tsx";

const shownDays = 30;

/** Input and output tokens of the holder's key on each of the last days. */
export function OwnKeyChart(props: { own: OwnKey }): JSX.Element {
  const span = (): TimeSpan => {
    const to = floorToStep(Date.parse(props.own.now), dayMs) + dayMs;
    return { from: to - shownDays * dayMs, to };
  };
  const days = () => props.own.daily.map((day) => ({ ...day, bucket_start: `${day.date}T00:00:00+09:00` }));
  const total = (field: "input_tokens" | "output_tokens"): string =>
    count(props.own.daily.reduce((sum, day) => sum + day[field], 0));
  const series = (stepMs: number) =>
    (["input_tokens", "output_tokens"] as const).map((field, id) => ({
      id,
      label: id === 0 ? "Input tokens" : "Output tokens",
      colour: id === 0 ? 7 : 1,
      values: valuesInSteps(days(), { span: span(), stepMs }, (day) => day[field], add),
    }));
  return (
    <Chart
      label="Tokens by day"
      summary={`${total("input_tokens")} input and ${total("output_tokens")} output tokens in ${shownDays} days.`}
      span={span()}
      bucketMs={dayMs}
      kind="bars"
      series={series}
      format={compact}
      whole
      rows={(_, drawn, step) =>
        drawn.map(({ label, colour, values }) => ({ label, colour, value: count(values[step] || 0) }))
      }
      // There is nothing finer to show.
      onZoom={() => {}}
      zoomed={false}
      pans={false}
      loaded
      loading={false}
      empty={<EmptyState title={`This key has no tokens in ${shownDays} days`} />}
    />
  );
}
