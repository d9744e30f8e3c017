import type { JSX } from "solid-js";
import { CachePanel } from "./cache-panel.tsx";
import { ClientUsagePanel } from "./client-usage-panel.tsx";
import { ModelUsagePanel } from "./model-usage-panel.tsx";
import { ReconciliationPanel } from "./reconciliation-panel.tsx";

/** Below the usage page's first view. */
export const UsagePanels = (): JSX.Element => (
  <>
    <ModelUsagePanel />
    <CachePanel />
    <ClientUsagePanel />
    <ReconciliationPanel />
  </>
);
