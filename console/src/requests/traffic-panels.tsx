import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { plural, shareOf } from "../lib/format.ts";
import { type CacheShares, useCacheQuery } from "../queries.ts";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Icon } from "../ui/icon.tsx";
import { FailuresPanel } from "./failures-panel.tsx";
import { LatencyPanel } from "./latency-panel.tsx";
import { type Tokenless, useTokenlessQuery } from "./queries.ts";
import "../styles/lazy-pages.css";

/** Below the overview's first view: what was slow, and what failed. */
export const TrafficPanels = (): JSX.Element => (
  <>
    <TokenlessNotice />
    <CacheNotice />
    <LatencyPanel />
    <FailuresPanel />
  </>
);

/** Most backends report the usage of a stream only if the request asks for it. */
function TokenlessNotice(): JSX.Element {
  const tokenless = useTokenlessQuery(24);
  return (
    <Show when={(tokenless.data?.streamed_count ?? 0) > 0 && tokenless.data}>
      {(data) => (
        <div class="notice" data-tone="warning" role="note">
          <Icon name="warning" />
          <p>
            {plural(data().streamed_count, "streamed response")} of the last 24 hours counted without tokens
            {mostOf(data())}: the backend reported no usage. {advice(data().force_stream_usage)}{" "}
            <A href="/settings">See the settings</A>,{" "}
            <HandbookLink to="counting#no-usage-reported">read why</HandbookLink>
          </p>
        </div>
      )}
    </Show>
  );
}

/** A client whose prompts do not begin alike makes the backend read all of them anew. */
function CacheNotice(): JSX.Element {
  const cache = useCacheQuery(() => ({ by: "client", hours: 1, limit: 10 }));
  return (
    <Show when={cache.data?.rows.find((row) => row.is_low)}>
      {(row) => (
        <div class="notice" data-tone="warning" role="note">
          <Icon name="warning" />
          <p>
            {shareOf(row().cached_tokens, row().input_tokens)} of the input of {row().name} in the last hour came from a
            cache. {cacheAdvice(row(), cache.data?.is_reported === true)}{" "}
            <A href={`/requests?${new URLSearchParams({ client: row().name ?? "" }).toString()}`}>See its requests</A>,{" "}
            <HandbookLink to="agents#what-agents-send">read why</HandbookLink>
          </p>
        </div>
      )}
    </Show>
  );
}

function cacheAdvice({ rule }: CacheShares["rows"][number], isReported: boolean): string {
  const unless = isReported ? "" : " Or the backend does not report what its cache had.";
  if (rule === null) return `Its prompts may not begin alike from request to request.${unless}`;
  return `Its prompts begin with a line that changes: set CLIENT_RULES to auto, or add ${rule}, and Tollgate takes it out.${unless}`;
}

function mostOf({ rows }: Tokenless): string {
  const most = rows.find(({ streamed_count: streamed }) => streamed > 0);
  return most === undefined ? "" : `, most of them by ${most.key_name ?? "deleted keys"} on ${most.path}`;
}

const advice = (setting: string): string =>
  setting === "off"
    ? "Set PROXY_FORCE_STREAM_USAGE to final, and Tollgate requests it from the backend."
    : `PROXY_FORCE_STREAM_USAGE is ${setting}, so this backend does not report usage in these streams, or they ended early.`;
