import { type JSX, Show } from "solid-js";
import { now } from "../lib/server-clock.ts";
import { dayLabel, zonedClockLabel } from "../lib/time-labels.ts";
import { Icon } from "../ui/icon.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { backendCauseText } from "./backend-cause.ts";
import type { Overview } from "./queries.ts";

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

/** Whether the limits of keys hold. */
export const LimitsNotice = (props: { limits: Overview["limits"] | undefined }): JSX.Element => (
  <Show when={props.limits === "degraded"}>
    <div class="notice" data-tone="error">
      <Icon name="warning" />
      <p>
        The database does not answer in time, so the limits of API keys hold only in part. <code>LIMITS_FALLBACK</code>{" "}
        says what holds meanwhile.
      </p>
    </div>
  </Show>
);

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
