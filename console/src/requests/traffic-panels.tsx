import type { JSX } from "solid-js";
import "../styles/lazy-pages.css";
import { FailuresPanel } from "./failures-panel.tsx";
import { LatencyPanel } from "./latency-panel.tsx";
import { TokenlessNotice } from "./tokenless-notice.tsx";

/** Below the overview's first view: what was slow, and what failed. */
export const TrafficPanels = (): JSX.Element => (
  <>
    <TokenlessNotice />
    <LatencyPanel />
    <FailuresPanel />
  </>
);
