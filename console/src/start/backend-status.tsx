import { A } from "@solidjs/router";
import { For, type JSX, Show } from "solid-js";
import { now } from "../lib/server-clock.ts";
import { dayLabel, zonedClockLabel } from "../lib/time-labels.ts";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Icon } from "../ui/icon.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { backendCauseText } from "./backend-cause.ts";
import type { Overview } from "./queries.ts";

/** Whether the backends respond, in the page's heading. */
export function BackendStatus(props: { overview: Overview | undefined }): JSX.Element {
  return (
    <Show when={props.overview}>
      {(overview) => (
        <p class="status" data-state={isWell(overview()) ? "good" : "bad"} role="status">
          {statusText(overview())}
          <span class="faint" aria-live="off">
            <RelativeTime at={Date.parse(overview().upstream.checked_at)} />
          </span>
        </p>
      )}
    </Show>
  );
}

const listOut = ({ backends }: Overview): Overview["backends"] => backends.filter(({ state }) => state === "out");

/** The only backend is never known to be out: each request tries it. */
const isWell = (overview: Overview): boolean =>
  overview.backends.length > 1 ? listOut(overview).length === 0 : overview.upstream.ok;

function statusText(overview: Overview): string {
  const { backends } = overview;
  if (backends.length < 2) return overview.upstream.ok ? "Backend responds" : "Backend does not respond";
  return `${backends.filter(({ state }) => state === "in").length} of ${backends.length} backends in`;
}

/** Which backends do not respond, and since when. */
export const BackendNotice = (props: { overview: Overview | undefined }): JSX.Element => (
  <Show when={props.overview}>
    {(overview) => (
      <Show when={overview().backends.length > 1} fallback={<UpstreamNotice upstream={overview().upstream} />}>
        <Show when={listOut(overview()).length > 0}>
          <div class="notice" data-tone="error">
            <Icon name="warning" />
            <p>
              <For each={listOut(overview())}>
                {({ name, since }, index) => (
                  <>
                    {index() === 0 ? "" : ", "}
                    <b>{name}</b> is out
                    <Since at={Date.parse(since)} />
                  </>
                )}
              </For>
              . <A href="/settings/backends">Backends</A>,{" "}
              <HandbookLink to="watching#when-the-backend-is-out">what to do</HandbookLink>
            </p>
          </div>
        </Show>
      </Show>
    )}
  </Show>
);

/** Which address does not respond, since when and why. */
const UpstreamNotice = (props: { upstream: Overview["upstream"] }): JSX.Element => (
  <Show when={!props.upstream.ok}>
    <div class="notice" data-tone="error">
      <Icon name="warning" />
      <p>
        No usable response from the backend at <code>{props.upstream.url}</code>
        <Show when={props.upstream.failing_since}>{(since) => <Since at={Date.parse(since())} />}</Show>:{" "}
        {backendCauseText(props.upstream.cause)}. Requests fail until it responds. Its address stands in{" "}
        <code>PROXY_UPSTREAM_URL</code>, or in the file that <code>MODELS_FILE</code> names.{" "}
        <HandbookLink to="watching#when-the-backend-is-out">What to do</HandbookLink>
      </p>
    </div>
  </Show>
);

/** Whether the limits of keys hold. */
export const LimitsNotice = (props: { limits: Overview["limits"] | undefined }): JSX.Element => (
  <Show when={props.limits === "degraded"}>
    <div class="notice" data-tone="error">
      <Icon name="warning" />
      <p>
        The database does not answer in time, so the limits of API keys hold only in part. <code>LIMITS_FALLBACK</code>{" "}
        says <HandbookLink to="keys-and-limits#while-the-database-does-not-answer">what holds meanwhile</HandbookLink>.
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
