import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { Sparkline } from "../charts/sparkline.tsx";
import { count, duration, milliseconds, plural, shareOf, threeDigits } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { requestsHref } from "../lib/requests-href.ts";
import { useStatesQuery } from "../queries.ts";
import { type Backend, useDrain, verdictOf } from "./backend-queries.ts";
import { Button } from "../ui/controls.tsx";

/** A backend in the table: its state, and the figures of its last hour. */
export function BackendRow(props: { backend: Backend; onAsk: () => void }): JSX.Element {
  const drain = useDrain();
  const isDraining = (): boolean => props.backend.state === "draining";
  return (
    <tr>
      <th scope="row" class="backend-name">
        <A href={requestsHref({ backend: props.backend.name })}>{props.backend.name}</A>
        <Show when={props.backend.spill}>
          {" "}
          <span class="badge" title="Used only while the others of a model are full or out">
            Spill
          </span>
        </Show>
        <Show when={!props.backend.url.endsWith(`//${props.backend.name}`)}>
          <span class="under">{props.backend.url}</span>
        </Show>
        <span class="under">{modelsLabel(props.backend.models)}</span>
      </th>
      <StateCell backend={props.backend} />
      <td class="number share-cell" data-label="In flight">
        {count(props.backend.in_flight)}
        <Show when={props.backend.max_concurrency}>
          {(most) => (
            <>
              {` of ${count(most())}`}
              <span class="share-bar" style={{ "--share": Math.min(1, props.backend.in_flight / most()) }} />
            </>
          )}
        </Show>
        <Under text={props.backend.waiting === 0 ? undefined : `${count(props.backend.waiting)} waiting`} />
      </td>
      <td class="number" data-label="Requests">
        {count(props.backend.requests_1h)}
        <Under tone="bad" text={errors(props.backend)} />
      </td>
      <td class="number" data-label="First byte">
        {optional(props.backend.first_byte_p50_ms, milliseconds)}
        <Under text={slowest(props.backend)} />
        <Show when={props.backend.first_byte_points_ms.some((one) => one !== null)}>
          <Sparkline
            values={props.backend.first_byte_points_ms.map((one) => one ?? 0)}
            label={`First byte of ${props.backend.name}`}
            says={() => `By three minutes of the last hour, ${firstByteSpan(props.backend)}`}
          />
        </Show>
      </td>
      <td class="number" data-label="Output">
        {optional(props.backend.output_tokens_per_second, threeDigits)}
        <Under text={props.backend.output_tokens_per_second === null ? undefined : "tokens/s a stream"} />
        <Under text={reads(props.backend)} />
      </td>
      <td class="number" data-label="From cache">
        {optional(props.backend.cached_share, (share) => shareOf(share, 1))}
        <Under text={expected(props.backend)} />
        <Under
          text={misrouted(props.backend)}
          title="Of the input, what it read although another backend would have had less to do"
        />
        <Under text={before(props.backend)} />
      </td>
      <td class="row-actions">
        <Button
          aria-label={`${isDraining() ? "Put back" : "Take out"} ${props.backend.name}`}
          disabled={drain.isPending}
          onClick={() => (isDraining() ? drain.mutate({ name: props.backend.name, draining: false }) : props.onAsk())}
        >
          {isDraining() ? "Put back" : "Take out"}
        </Button>
      </td>
    </tr>
  );
}

function StateCell(props: { backend: Backend }): JSX.Element {
  const states = useStatesQuery();
  const since = (): number =>
    Date.parse((props.backend.state === "in" && props.backend.failing_since) || props.backend.since);
  /** What it answered to the probe that took it out, or why there was no answer. */
  const answer = (): string | undefined =>
    states.data?.states.find(({ kind, object }) => kind === "backend_out" && object === props.backend.name)?.what;
  return (
    <td data-label="State">
      <span class="badge" data-tone={verdictOf(props.backend).tone}>
        {verdictOf(props.backend).label}
      </span>
      <span class="under" title={`Since ${dateTimeLabel(since())}`}>
        for {duration(Math.max(0, now() - since()))}
        {props.backend.taken_out_by === null ? "" : `, by ${props.backend.taken_out_by.replace(" (password)", "")}`}
      </span>
      <Under class="cause" tone="bad" text={verdictOf(props.backend).tone === "bad" ? answer() : undefined} />
    </td>
  );
}

/** Less is not worth a line. */
const leastRegret = 0.005;

const Under = (props: { text: string | undefined; title?: string; class?: string; tone?: "bad" }): JSX.Element => (
  <Show when={props.text}>
    <span class={`under ${props.class ?? ""}`} data-tone={props.tone} title={props.title}>
      {props.text}
    </span>
  </Show>
);

const optional = (value: number | null, format: (value: number) => string): string =>
  value === null ? "–" : format(value);

const errors = ({ errors_1h: failed }: Backend): string | undefined =>
  failed === 0 ? undefined : plural(failed, "error");

const expected = ({ expected_cached_share: share }: Backend): string | undefined =>
  share === null ? undefined : `${shareOf(share, 1)} expected`;

const misrouted = ({ regret_share: share }: Backend): string | undefined =>
  (share ?? 0) < leastRegret ? undefined : `${shareOf(share ?? 0, 1)} misrouted`;

const slowest = ({ first_byte_p95_ms: p95 }: Backend): string | undefined =>
  p95 === null ? undefined : `95% within ${milliseconds(p95)}`;

const reads = ({ prefill_tokens_per_second: speed }: Backend): string | undefined =>
  speed === null ? undefined : `reads ${count(Math.round(speed))} tokens/s`;

const before = ({ cached_share: share, cached_share_day_before: earlier }: Backend): string | undefined =>
  share !== null && earlier !== null && earlier - share >= leastFall
    ? `${shareOf(earlier, 1)} a day before`
    : undefined;

/** As where caches became private. */
const leastFall = 0.05;

function firstByteSpan({ first_byte_points_ms: points }: Backend): string {
  const known = points.filter((one) => one !== null);
  return `${milliseconds(Math.min(...known))} to ${milliseconds(Math.max(...known))}`;
}

const shownModels = 3;

function modelsLabel(models: readonly string[]): string {
  if (models.length === 0) return "Whatever it serves";
  const more = models.length - shownModels;
  return models.slice(0, shownModels).join(", ") + (more > 0 ? ` and ${plural(more, "other")}` : "");
}
