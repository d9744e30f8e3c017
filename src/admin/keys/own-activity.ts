import type { KeyId } from "../../domain/keys.ts";
import { clientRules, type ClientRule } from "../../domain/models.ts";
import { cachedTokensOf, wholeInput } from "../../domain/usage.ts";
import { readSums } from "../../store/requests/sums.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { dayNumberOf, monthOf, msPerDay, timestampOf } from "../../time/seoul.ts";
import { shareNextRun } from "../../time/per-tick.ts";
import * as schema from "../http/schemas.ts";
import { modelPricesOf, readPrices } from "../usage/prices.ts";
import { readReport } from "../usage/report.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import type { RequestChange } from "../../domain/requests.ts";

/** What the holder of a key may know of its requests: no address, since others may share the key. */
const ownActivityBody = t.Object({
  this_month: t.Object({
    prompt_tokens: t.Integer({ minimum: 0, description: "With what came from the backend’s cache" }),
    from_cache_tokens: schema.count,
    currency: schema.nullable(t.String()),
    cost: schema.nullable(t.Number({ description: "Of the tokens whose price is known; null if there are none" })),
    cost_is_partial: t.Boolean(),
  }),
  client_rules: t.Array(
    t.Object({
      rule: t.Unsafe<ClientRule>(t.Union(clientRules.map((name) => t.Literal(name)))),
      request_count: schema.count,
    }),
    { description: "Those that changed requests of the last 24 hours" },
  ),
  requests: t.Array(
    t.Object({
      request_id: t.String(),
      ended_at: schema.timestamp,
      path: t.String(),
      model: schema.nullable(t.String({ description: "As the client asked for it" })),
      client: schema.nullable(t.String()),
      class: schema.nullable(t.String()),
      status: t.Integer(),
      outcome: t.String(),
      code: schema.nullable(t.String()),
      ...schema.counterMembers(() => schema.nullable(schema.count)),
      duration_ms: t.Number({ minimum: 0 }),
      changes: t.Array(t.Unsafe<RequestChange>(t.String())),
    }),
    { description: "The last ones, latest first" },
  ),
});
type OwnActivityBody = Static<typeof ownActivityBody>;

export const ownActivityContract = schema.responds("What the API key itself asked for of late", ownActivityBody);

interface OwnActivityDeps {
  store: Pick<Store, "usage" | "requests" | "settings">;
  clock: WallClock;
}

const shownRequests = 50;
/** Each is a short read of the database, which anyone with a key may ask for. */
const maxReads = 20;

/** Serves the console's page `/me`: what a holder needs to ask the operator about a request. */
export function getOwnActivity({ store, clock }: OwnActivityDeps) {
  const read = shareNextRun(async (keyId: KeyId): Promise<OwnActivityBody> => {
    const now = clock();
    const [month, { requests }, rules] = await Promise.all([
      readMonth(store, keyId, now),
      store.requests.list({ keyId }, shownRequests),
      countRules(store.requests, { keyId, since: now - msPerDay }),
    ]);
    return { this_month: month, client_rules: rules, requests: requests.map(requestBody) };
  });
  return ({ keyId }: { keyId: KeyId }): Promise<OwnActivityBody> => read(keyId);
}

const requestBody = (
  request: Awaited<ReturnType<Store["requests"]["list"]>>["requests"][number],
): OwnActivityBody["requests"][number] => ({
  request_id: request.requestId,
  ended_at: timestampOf(request.endedAt),
  path: request.path,
  model: request.modelAsked,
  client: request.client,
  class: request.requestClass,
  status: request.status,
  outcome: request.outcome,
  code: request.code,
  ...schema.counterMembers((field) => request[field]),
  duration_ms: request.durationMs,
  changes: request.changes,
});

async function readMonth(
  store: OwnActivityDeps["store"],
  keyId: KeyId,
  now: number,
): Promise<OwnActivityBody["this_month"]> {
  const prices = await readPrices(store);
  const { rows } = await readReport(
    store.usage.costs({
      firstDay: monthOf(now).firstDay,
      lastDay: dayNumberOf(now),
      by: "key",
      prices: modelPricesOf(prices),
      limit: 1,
      keyId,
    }),
  );
  const [row] = rows;
  return {
    prompt_tokens: row === undefined ? 0 : wholeInput(row),
    from_cache_tokens: row === undefined ? 0 : cachedTokensOf(row),
    currency: prices.currency,
    cost: row?.cost ?? null,
    cost_is_partial: row?.isPartial ?? false,
  };
}

async function countRules(
  log: Store["requests"],
  filter: Parameters<Store["requests"]["sum"]>[1],
): Promise<OwnActivityBody["client_rules"]> {
  const counts = new Map(clientRules.map((rule) => [rule, 0]));
  const { sums } = await readSums(log, ["clientRules"], filter, maxReads);
  for (const { clientRules: acted, requestCount } of sums) {
    for (const rule of acted) counts.set(rule, (counts.get(rule) ?? 0) + requestCount);
  }
  return [...counts].flatMap(([rule, requests]) => (requests === 0 ? [] : [{ rule, request_count: requests }]));
}
