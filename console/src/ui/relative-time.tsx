import { type JSX, Show } from "solid-js";
import { timeAgo } from "../lib/format.ts";
import { seoulTimestamp } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";

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
