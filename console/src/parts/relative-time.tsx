import { type JSX, Show } from "solid-js";
import { ago } from "../data/format.ts";
import { now } from "../data/server-clock.ts";
import { dateTimeLabel, seoulTimestamp } from "../data/seoul-time.ts";

/** How long ago, ticking; the exact time of Seoul on hover. */
export function Ago(props: { at: number }): JSX.Element {
  return (
    <time datetime={seoulTimestamp(props.at)} title={dateTimeLabel(props.at)}>
      {ago(now() - props.at)}
    </time>
  );
}

/** @param props.at an ISO 8601 timestamp of the API */
export function AgoOrNever(props: { at: string | null }): JSX.Element {
  return (
    <Show when={props.at} fallback={<span class="faint">Never</span>}>
      {(at) => <Ago at={Date.parse(at())} />}
    </Show>
  );
}
