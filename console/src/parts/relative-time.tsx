import { type JSX, Show } from "solid-js";
import { timeAgo } from "../data/format.ts";
import { seoulTimestamp } from "../data/seoul-time.ts";
import { now } from "../data/server-clock.ts";
import { dateTimeLabel } from "../data/time-labels.ts";

/** The time since `at`, updated every second; the exact time on hover. */
export function RelativeTime(props: { at: number }): JSX.Element {
  return (
    <time datetime={seoulTimestamp(props.at)} title={dateTimeLabel(props.at)}>
      {timeAgo(now() - props.at)}
    </time>
  );
}

/** @param props.at an ISO 8601 timestamp */
export function RelativeTimeOrNever(props: { at: string | null }): JSX.Element {
  return (
    <Show when={props.at} fallback={<span class="faint">Never</span>}>
      {(at) => <RelativeTime at={Date.parse(at())} />}
    </Show>
  );
}
