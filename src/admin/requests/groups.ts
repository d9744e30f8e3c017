import type { AdminDeps } from "../http/deps.ts";
import { type SubjectId, subjectOf } from "../../domain/keys.ts";
import { pricePrompts, type ModelPrice, pricesOn, rankPrices } from "../../domain/prices.ts";
import type { Catalog } from "../../domain/models.ts";
import type { RequestSums, RequestTrait, RequestTraits } from "../../store/requests/contract.ts";
import { addTo, noSums, readSums } from "../../store/requests/sums.ts";
import * as schema from "../http/schemas.ts";
import { msPerDay, timestampOf } from "../../time/seoul.ts";
import { modelPricesOf, readPrices } from "../usage/prices.ts";
import { logFilterOf } from "./requests.ts";
import { logFilterParameters } from "./contract.ts";
import { type Static, Type as t } from "@sinclair/typebox";

/** By what requests can be grouped, and what those of a group have in common. */
export const groupings = {
  program: "client",
  client: "client",
  class: "requestClass",
  key: "keyId",
  team: "teamId",
  user: "userId",
  model: "modelSent",
  backend: "backend",
  path: "path",
  status: "status",
  outcome: "outcome",
  address: "address",
  conversation: "conversation",
} as const satisfies Record<string, RequestTrait>;
export type Grouping = keyof typeof groupings;

const sumsMembers = {
  request_count: schema.count,
  prompt_tokens: t.Integer({ minimum: 0, description: "Input, with what came from a cache" }),
  from_cache_tokens: t.Integer({ minimum: 0, description: "As far as backends report it" }),
  lost_count: t.Integer({ minimum: 0, description: "Requests whose `cache_loss` is known" }),
  output_tokens: schema.count,
  cost: schema.nullable(t.Number({ description: "Of the tokens whose price is known; null if there are none" })),
  cost_is_partial: t.Boolean(),
};

const groupsQuery = t.Object({
  by: schema.choice("by", Object.keys(groupings) as Grouping[], "program"),
  ...logFilterParameters,
  limit: schema.integerParameter("limit", { minimum: 1, maximum: 500, default: 200 }),
});
export type GroupsQuery = Static<typeof groupsQuery>;

const groupsBody = t.Object({
  by: t.Unsafe<Grouping>(t.String()),
  counted_from: schema.nullable({
    ...schema.timestamp,
    description: "Requests before this were too many to add up; null: all that match were",
  }),
  kept_from: { ...schema.timestamp, description: "Since when the log is kept at most" },
  currency: schema.nullable(t.String()),
  total: t.Object(sumsMembers),
  classes: t.Array(t.Object({ class: schema.nullable(t.String()), prompt_tokens: schema.count }), {
    description: "What the requests are for; most input first, at most 20",
  }),
  group_count: schema.count,
  rows: t.Array(
    t.Object({
      name: schema.nullable(t.String({ description: "Null for a conversation, and for requests that do not say" })),
      id: schema.nullable(t.Integer({ description: "Of the key, the team, the user or the conversation" })),
      ...sumsMembers,
    }),
    { description: "Most input first" },
  ),
});
type GroupsBody = Static<typeof groupsBody>;

export const groupsContract = schema.takesQuery(
  "The requests of the log by client, class, key, model or what else they have in common: tokens, what came from caches, cost",
  groupsQuery,
  groupsBody,
);

/** About half a second of the database's time, of which a count waits for five milliseconds at most. */
export const maxReads = 100;
const maxClasses = 20;

type Charged = RequestSums & { cost: number | null; costIsPartial: boolean };

export const listGroups =
  ({ store, catalog, clock, retention }: AdminDeps) =>
  async ({ query }: { query: GroupsQuery }): Promise<GroupsBody> => {
    const { by, limit } = query;
    const prices = await readPrices(store);
    const models = modelPricesOf(prices);
    const traits = new Set<RequestTrait>([groupings[by], "requestClass"]);
    // Prices differ by model and day.
    if (models.length > 0) traits.add("modelSent").add("day");
    const { sums, next } = await readSums(store.requests, [...traits], logFilterOf(query, catalog()), maxReads);
    const priceOf = priceFinder(models, catalog());
    const total = newCharged();
    const classes = new Map<string | null, number>();
    const groups = new Map<Name, Charged>();
    for (const one of sums) {
      const name = nameOf(query, one);
      const group = groups.getOrInsertComputed(name, newCharged);
      const price = priceOf(one);
      for (const sum of [group, total]) charge(sum, one, price);
      classes.set(one.requestClass, (classes.get(one.requestClass) ?? 0) + one.promptTokens);
    }
    const sorted = [...groups].toSorted(([, a], [, b]) => mostInput(a, b)).slice(0, limit);
    const ids = sorted.flatMap(([id]) => subjectIdOf(id, by) ?? []);
    const names = new Map(await store.requests.keyNames(ids));
    return {
      by,
      counted_from: next === undefined ? null : timestampOf(next.endedAt),
      kept_from: timestampOf(clock() - retention.requestLog.days * msPerDay),
      currency: prices.currency,
      total: schema.apiBody(total),
      classes: [...classes]
        .map(([requestClass, tokens]) => ({ class: requestClass, prompt_tokens: tokens }))
        .toSorted((a, b) => b.prompt_tokens - a.prompt_tokens)
        .slice(0, maxClasses),
      group_count: groups.size,
      rows: sorted.map(([name, group]) => Object.assign(labelOf(name, by, names), schema.apiBody(group))),
    };
  };

type Name = string | number | null;

function nameOf({ by }: GroupsQuery, traits: RequestTraits): Name {
  const value = traits[groupings[by]];
  return by === "program" ? (traits.client?.split("/", 1)[0] ?? null) : value;
}

function subjectIdOf(name: Name, by: GroupsQuery["by"]): SubjectId | undefined {
  if (typeof name !== "number") return undefined;
  return by === "key" ? name : by === "team" || by === "user" ? subjectOf(name) : undefined;
}

function labelOf(
  name: Name,
  by: GroupsQuery["by"],
  names: ReadonlyMap<SubjectId, string>,
): Pick<GroupsBody["rows"][number], "name" | "id"> {
  const subject = subjectIdOf(name, by);
  const hasId = subject !== undefined || by === "conversation";
  if (!hasId || typeof name !== "number") return { name: name === null ? null : String(name), id: null };
  return { name: (subject !== undefined && names.get(subject)) || null, id: name };
}

/** By the name under which a model is counted. */
function priceFinder(models: readonly ModelPrice[], catalog: Catalog) {
  const ranked = rankPrices(models);
  const days = new Map<number, ReturnType<typeof pricesOn>>();
  return ({ day, modelSent }: Pick<RequestTraits, "day" | "modelSent">): ModelPrice | undefined => {
    if (ranked.length === 0) return undefined;
    const find = days.getOrInsertComputed(day, () => pricesOn(ranked, day));
    return find(catalog.models.find(({ servedAs }) => servedAs === modelSent)?.name ?? modelSent ?? "");
  };
}

const newCharged = (): Charged => ({ ...noSums, cost: null, costIsPartial: false });

function charge(sum: Charged, added: RequestSums, price: ModelPrice | undefined): void {
  addTo(sum, added);
  if (added.promptTokens + added.outputTokens === 0) return;
  if (price === undefined) {
    sum.costIsPartial = true;
    return;
  }
  sum.cost = (sum.cost ?? 0) + pricePrompts(price, added);
}

const mostInput = (a: RequestSums, b: RequestSums): number =>
  b.promptTokens - a.promptTokens || b.requestCount - a.requestCount;
