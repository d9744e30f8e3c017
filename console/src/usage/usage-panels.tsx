import type { JSX } from "solid-js";
import { ModelUsagePanel } from "./model-usage-panel.tsx";
import { ReconciliationPanel } from "./reconciliation-panel.tsx";
import { RequestGroupsPanel } from "./request-groups-panel.tsx";

/** Below the usage page's first view. */
export const UsagePanels = (): JSX.Element => (
  <>
    <ModelUsagePanel />
    <RequestGroupsPanel />
    <ReconciliationPanel />
  </>
);
