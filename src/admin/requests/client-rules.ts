import type { AdminDeps } from "../http/deps.ts";
import type { CacheLoss } from "../../domain/cache-loss.ts";
import { type Catalog, type ClientRule, clientRules } from "../../domain/models.ts";
import type { RequestSums, RequestTraits } from "../../store/requests/contract.ts";
import { readSums } from "../../store/requests/sums.ts";
import { minutesPerHour, msPerMinute, timestampOf } from "../../time/seoul.ts";
import { maxReads } from "./groups.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import { engines } from "../../domain/backends.ts";
import * as schema from "../http/schemas.ts";

const clientRulesQuery = t.Object({
  hours: schema.integerParameter("hours", { minimum: 1, maximum: 720, default: 24 }),
});
type ClientRulesQuery = Static<typeof clientRulesQuery>;

const clientRulesBody = t.Object({
  hours: t.Integer(),
  since: schema.timestamp,
  complete: t.Boolean({ description: "False: there are more requests, before `since`" }),
  rows: t.Array(
    t.Object({
      client: t.String({ description: "Program and version" }),
      backend: schema.nullable(t.String()),
      engines: t.Array(schema.oneOf(engines)),
      rules: t.Array(schema.oneOf(clientRules)),
      request_count: schema.described("All requests of this client for this backend"),
      refused_count: schema.described("Those whose body the backend refused with 400"),
      read_anew_count: schema.described(
        "Those that got less than half of their input from a cache, for a reason that the rules mend or that is not known",
      ),
      read_anew_tokens: schema.nullable(
        schema.described("Their input from no cache; null: the backend does not report caches"),
      ),
    }),
    { description: "What the rules of clients would have mended in requests that went without them" },
  ),
});
type ClientRulesBody = Static<typeof clientRulesBody>;

export const clientRulesContract = schema.takesQuery(
  "Which client rules would have helped which clients, from the request log",
  clientRulesQuery,
  clientRulesBody,
);

/**
 * What of a request each rule would have mended, as the log has it. A loss of null: it is not known why the input came from no
 * cache, because it was the first turn of a conversation, or there is one backend.
 */
const mends: Readonly<Record<ClientRule, { refusal: boolean; losses: readonly (CacheLoss | null)[] }>> = {
  // The line is part of the system prompt: it changes with each request, or with each conversation.
  drop_billing_line: { refusal: false, losses: ["system_changed", null] },
  // Strict templates refuse these turns, others move them in front of what they had read before.
  system_turns_to_user: { refusal: true, losses: ["evicted", null] },
  developer_to_system: { refusal: true, losses: [] },
  function_tools_only: { refusal: true, losses: [] },
  // The log does not know which refusals were of a full context.
  full_context_code: { refusal: false, losses: [] },
};

const traits = ["client", "backend", "modelSent", "isRefused", "isReadAnew", "cacheLoss", "clientRules"] as const;
type Sums = RequestSums & Pick<RequestTraits, (typeof traits)[number]>;

export const listClientRules =
  ({ store, clock, catalog, learnClientNeeds }: AdminDeps) =>
  async ({ query: { hours } }: { query: ClientRulesQuery }): Promise<ClientRulesBody> => {
    const since = clock() - hours * minutesPerHour * msPerMinute;
    const { sums, next } = await readSums(store.requests, traits, { since }, maxReads);
    return {
      hours,
      since: timestampOf(next?.endedAt ?? since),
      complete: next === undefined,
      rows: rowsOf(sums, catalog(), await learnClientNeeds()),
    };
  };

type Row = ClientRulesBody["rows"][number];

function rowsOf(
  sums: readonly Sums[],
  catalog: Catalog,
  findNeeds: Awaited<ReturnType<AdminDeps["learnClientNeeds"]>>,
): Row[] {
  const reporters = new Set(sums.flatMap(({ backend, fromCacheTokens }) => (fromCacheTokens > 0 ? [backend] : [])));
  const groups = new Map<string, { row: Row; rules: Set<ClientRule> }>();
  for (const one of sums) {
    const { client, backend, requestCount } = one;
    // Requests without tokens were lists of models, or refused by us.
    if (client === null || (one.promptTokens === 0 && !one.isRefused)) continue;
    const missing = findMissing(one, catalog, findNeeds(client, backend === null ? [] : [backend]).rules);
    if (missing.length === 0) continue;
    const isReporter = reporters.has(backend);
    const name = JSON.stringify([client, backend]);
    const group = groups.getOrInsertComputed(name, () => ({
      row: { client, backend, ...noFigures, read_anew_tokens: isReporter ? 0 : null },
      rules: new Set(),
    }));
    group.row.request_count += requestCount;
    const mending = missing.filter((rule) => wouldMend(rule, one, isReporter));
    if (mending.length === 0) continue;
    for (const rule of mending) group.rules.add(rule);
    if (one.isRefused) group.row.refused_count += requestCount;
    else group.row.read_anew_count += requestCount;
    if (group.row.read_anew_tokens !== null)
      group.row.read_anew_tokens += one.isRefused ? 0 : one.promptTokens - one.fromCacheTokens;
  }
  return [...groups.values()]
    .filter(({ rules }) => rules.size > 0)
    .map(({ row, rules }) => {
      const needs = findNeeds(row.client, row.backend === null ? [] : [row.backend]);
      return Object.assign(row, { engines: [...needs.engines], rules: needs.rules.filter((rule) => rules.has(rule)) });
    })
    .toSorted((a, b) => weightOf(b) - weightOf(a));
}

const noFigures = { engines: [], rules: [], request_count: 0, refused_count: 0, read_anew_count: 0 };

/** Those that are due, and neither acted nor are set for the model by now. */
function findMissing(
  { modelSent, clientRules: acted }: Sums,
  catalog: Catalog,
  due: readonly ClientRule[],
): ClientRule[] {
  const setting = (catalog.models.find(({ servedAs }) => servedAs === modelSent) ?? catalog.otherModels).clientRules;
  if (setting === "auto") return [];
  return due.filter((rule) => !setting.includes(rule) && !acted.includes(rule));
}

/** Of a backend that reports no caches, nothing tells those apart that it read anew. */
function wouldMend(rule: ClientRule, { isRefused, isReadAnew, cacheLoss }: Sums, isReporter: boolean): boolean {
  const { refusal, losses } = mends[rule];
  if (isRefused) return refusal;
  return (isReadAnew || !isReporter) && (losses as readonly (string | null)[]).includes(cacheLoss);
}

const weightOf = ({ refused_count: refused, read_anew_tokens: tokens }: Row): number => (tokens ?? 0) + refused;
