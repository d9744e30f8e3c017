import { type JSX, Show } from "solid-js";
import { timeAgo } from "../data/format.ts";
import { now } from "../data/server-clock.ts";
import { dateTimeLabel, seoulTimestamp } from "../data/seoul-time.ts";

/** How long ago, ticking; the exact time of Seoul on hover. */
export function RelativeTime(props: { at: number }): JSX.Element {
  return (
    <time datetime={seoulTimestamp(props.at)} title={dateTimeLabel(props.at)}>
      {timeAgo(now() - props.at)}
    </time>
  );
}

/** @param props.at an ISO 8601 timestamp of the API */
export function RelativeTimeOrNever(props: { at: string | null }): JSX.Element {
  return (
    <Show when={props.at} fallback={<span class="faint">Never</span>}>
      {(at) => <RelativeTime at={Date.parse(at())} />}
    </Show>
  );
}
