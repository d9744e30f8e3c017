import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { plural } from "../lib/format.ts";
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

function mostOf({ rows }: Tokenless): string {
  const most = rows.find(({ streamed_count: streamed }) => streamed > 0);
  return most === undefined ? "" : `, most of them by ${most.key_name ?? "deleted keys"} on ${most.path}`;
}

const advice = (setting: string): string =>
  setting === "off"
    ? "Set PROXY_FORCE_STREAM_USAGE to final, and Tollgate requests it from the backend."
    : `PROXY_FORCE_STREAM_USAGE is ${setting}, so this backend does not report usage in these streams, or they ended early.`;
