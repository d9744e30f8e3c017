import { type JSX, Show } from "solid-js";
import { backendCauseText } from "../data/backend-cause.ts";
import type { Overview } from "../data/queries.ts";
import { now } from "../data/server-clock.ts";
import { dayLabel, zonedClockLabel } from "../data/time-labels.ts";
import { Icon } from "./icon.tsx";
import { RelativeTime } from "./relative-time.tsx";

type Upstream = Overview["upstream"];

/** Whether the backend responds, in the page's heading. */
export function BackendStatus(props: { upstream: Upstream | undefined }): JSX.Element {
  return (
    <Show when={props.upstream}>
      {(upstream) => (
        <p class="status" data-state={upstream().ok ? "good" : "bad"} role="status">
          {upstream().ok ? "Backend responds" : "Backend does not respond"}
          <span class="faint" aria-live="off">
            <RelativeTime at={Date.parse(upstream().checked_at)} />
          </span>
        </p>
      )}
    </Show>
  );
}

/** Which address does not respond, since when and why. */
export function BackendNotice(props: { upstream: Upstream | undefined }): JSX.Element {
  return (
    <Show when={props.upstream?.ok === false && props.upstream}>
      {(upstream) => (
        <div class="notice" data-tone="error">
          <Icon name="warning" />
          <p>
            No usable response from the backend at <code>{upstream().url}</code>
            <Show when={upstream().failing_since}>{(since) => <Since at={Date.parse(since())} />}</Show>:{" "}
            {backendCauseText(upstream().cause)}. Requests fail until it responds. <code>PROXY_UPSTREAM_URL</code> sets
            its address.
          </p>
        </div>
      )}
    </Show>
  );
}

function Since(props: { at: number }): JSX.Element {
  const label = (): string => {
    const clock = zonedClockLabel(props.at);
    return dayLabel(props.at) === dayLabel(now()) ? clock : `${dayLabel(props.at)}, ${clock}`;
  };
  return (
    <>
      {" "}
      since {label()} (<RelativeTime at={props.at} />)
    </>
  );
}
