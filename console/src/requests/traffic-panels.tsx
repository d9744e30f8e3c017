import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { shareOf } from "../lib/format.ts";
import { type ClientRules, useClientRulesQuery } from "../queries.ts";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Icon } from "../ui/icon.tsx";
import { FailuresPanel } from "./failures-panel.tsx";
import { LatencyPanel } from "./latency-panel.tsx";
import { useRequestGroupsQuery } from "./queries.ts";
import { findLowCache, type GroupRow } from "./request-groups.ts";
import "../styles/lazy-pages.css";

/** Below the overview's first view: what was slow, and what failed. */
export const TrafficPanels = (): JSX.Element => (
  <>
    <CacheNotice />
    <LatencyPanel />
    <FailuresPanel />
  </>
);

/** A client whose prompts do not begin alike makes the backend read all of them anew. */
function CacheNotice(): JSX.Element {
  const groups = useRequestGroupsQuery(() => ({ by: "program", hours: 1 }));
  const low = (): GroupRow | undefined => groups.data && findLowCache(groups.data.rows);
  const isReported = (): boolean => (groups.data?.total.from_cache_tokens ?? 0) > 0;
  const rules = useClientRulesQuery(1, () => low() !== undefined);
  const mending = (): string[] => rulesOfProgram(rules.data?.rows ?? [], low()?.name);
  return (
    // Where nothing was reported at all, the backends may keep to themselves what they had cached.
    <Show when={(isReported() || mending().length > 0) && low()}>
      {(row) => (
        <div class="notice" data-tone="warning" role="note">
          <Icon name="warning" />
          <p>
            {shareOf(row().from_cache_tokens, row().prompt_tokens)} of the input of {row().name} in the last hour came
            from a cache. {cacheAdvice(mending(), isReported())}{" "}
            <A href={`/requests?${new URLSearchParams({ client: row().name ?? "" }).toString()}`}>See its requests</A>,{" "}
            <HandbookLink to="agents#what-agents-send">read why</HandbookLink>
          </p>
        </div>
      )}
    </Show>
  );
}

const rulesOfProgram = (rows: ClientRules["rows"], program: string | null | undefined): string[] => [
  ...new Set(rows.flatMap(({ client, rules }) => (client.split("/", 1)[0] === program ? rules : []))),
];

function cacheAdvice(rules: readonly string[], isReported: boolean): string {
  const unless = isReported ? "" : " Or the backend does not report what its cache had.";
  if (rules.length === 0) return `Its prompts may not begin alike from request to request.${unless}`;
  return `What it sends changes from request to request: set CLIENT_RULES to auto, or add ${rules.join(" and ")}.${unless}`;
}
