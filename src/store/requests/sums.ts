import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { msPerDay, msPerMinute, offsetMinutes } from "../../time/seoul.ts";
import { type Engine, safeSum } from "../engine/engine.ts";
import type {
  RequestFilter,
  RequestLogStore,
  RequestSums,
  RequestSumsPage,
  RequestTrait,
  RequestTraits,
} from "./contract.ts";
import { cacheApartBit, clientRuleBits, clientRulesOf } from "./row.ts";

const textTraits = [
  "client",
  "requestClass",
  "modelSent",
  "backend",
  "path",
  "outcome",
  "address",
  "cacheLoss",
] as const;
type TextTrait = (typeof textTraits)[number];
type NumberTrait = Exclude<RequestTrait, TextTrait>;
/** What the numbers of the query stand for. */
const meanings: Partial<Record<RequestTrait, (value: number) => unknown>> = {
  isRefused: (value) => value === 1,
  isReadAnew: (value) => value === 1,
  clientRules: clientRulesOf,
};

/** @param where a bounded part of the log */
export async function sumRequests<Trait extends RequestTrait>(
  { rows, tables: { requestLog: log } }: Engine,
  traits: readonly Trait[],
  where: SQL | undefined,
): Promise<RequestSumsPage<Trait>["sums"]> {
  const cached = sql`coalesce(${log.cachedInputTokens}, 0)`;
  const isCacheApart = sql`(${log.flags} & ${sql.raw(String(cacheApartBit))} > 0 or substr(${log.path}, 1, 12) = '/v1/messages' and ${cached} > coalesce(${log.inputTokens}, 0))`;
  const prompt = sql`coalesce(${log.inputTokens}, 0) + case when ${isCacheApart} then ${cached} else 0 end`;
  const computed: Partial<Record<RequestTrait, SQL>> = {
    day: sql.raw(`(ended_at + ${offsetMinutes * msPerMinute}) / ${msPerDay}`),
    isRefused: sql`case when ${log.status} = 400 and ${log.outcome} = 'completed' then 1 else 0 end`,
    isReadAnew: sql`case when ${cached} * 2 < ${prompt} then 1 else 0 end`,
    clientRules: sql`${log.flags} & ${sql.raw(String(clientRuleBits))}`,
  };
  const columns: Partial<Record<RequestTrait, SQLWrapper>> = log;
  const named = traits.map((trait) => sql`${computed[trait] ?? columns[trait]} as ${sql.identifier(trait)}`);
  const places = traits.map((_, at) => sql.raw(String(at + 1)));
  const found = await rows<RequestSums & Record<TextTrait, string | null> & Record<NumberTrait, number | null>>(
    sql`select ${sql.join(named, sql`, `)}, count(*) as "requestCount", count(${log.cacheLoss}) as "lostCount",
      ${safeSum(prompt)} as "promptTokens", ${safeSum(cached)} as "fromCacheTokens",
      coalesce(${safeSum(log.outputTokens)}, 0) as "outputTokens"
      from ${log} where ${where ?? sql`true`} group by ${sql.join(places, sql`, `)}`,
    textTraits,
  );
  return found.map((row) => {
    const meant = traits.map((trait) => [trait, meanings[trait]?.(Number(row[trait])) ?? row[trait]]);
    return Object.assign(row, Object.fromEntries(meant) as Pick<RequestTraits, Trait>);
  });
}

/** Clients choose some traits, so there may be as many groups as requests. */
const maxGroups = 20_000;

/**
 * Adds up the log, the latest requests first, in short reads of the database, so that counts are written in between.
 * @param maxReads how many: each looks at up to 2000 rows
 */
export async function readSums<Trait extends RequestTrait>(
  log: Pick<RequestLogStore, "sum">,
  traits: readonly Trait[],
  filter: RequestFilter,
  maxReads: number,
): Promise<RequestSumsPage<Trait>> {
  const groups = new Map<string, RequestSumsPage<Trait>["sums"][number]>();
  let next: RequestSumsPage<Trait>["next"];
  for (let read = 0; read < maxReads && groups.size < maxGroups; read++) {
    const page = await log.sum(traits, filter, next);
    for (const sums of page.sums) {
      const name = JSON.stringify(traits.map((trait) => sums[trait]));
      const group = groups.get(name);
      if (group === undefined) groups.set(name, sums);
      else addTo(group, sums);
    }
    ({ next } = page);
    if (next === undefined) break;
  }
  return { sums: [...groups.values()], next };
}

export const noSums: RequestSums = {
  requestCount: 0,
  lostCount: 0,
  promptTokens: 0,
  fromCacheTokens: 0,
  outputTokens: 0,
};

export function addTo(sums: RequestSums, added: RequestSums): void {
  for (const name of Object.keys(noSums) as (keyof RequestSums)[]) sums[name] += added[name];
}
