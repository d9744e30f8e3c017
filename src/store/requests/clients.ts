import { type SQL, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import { safeSum } from "../engine/safe-sum.ts";
import { fromCache } from "./cache-sums.ts";
import type { ClientSum } from "./contract.ts";
import { clientRuleBits, clientRulesOf } from "./row.ts";

const texts = ["client", "requestClass", "backend", "modelSent"] as const;

/** Texts are empty where the log has null. */
type Row = Record<(typeof texts)[number], string> &
  Record<"isRefused" | "ruleBits", number> &
  Pick<ClientSum, "requestCount" | "promptTokens" | "fromCacheTokens" | "outputTokens">;

/** Adds up the requests of each client for each purpose. */
export async function sumClients(
  { rows, tables: { requestLog: log } }: Engine,
  where: SQL | undefined,
): Promise<ClientSum[]> {
  const groups = [
    ...texts.map((name) => sql`coalesce(${log[name]}, '') as ${sql.identifier(name)}`),
    sql`case when ${log.status} = 400 and ${log.outcome} = 'completed' then 1 else 0 end as "isRefused"`,
    sql`${log.flags} & ${sql.raw(String(clientRuleBits))} as "ruleBits"`,
  ];
  const places = groups.map((_, at) => sql.raw(String(at + 1)));
  const { cached, apart } = fromCache(log);
  const found = await rows<Row>(
    sql`select ${sql.join(groups, sql`, `)}, count(*) as "requestCount",
      coalesce(${safeSum(log.inputTokens)}, 0) + ${safeSum(apart)} as "promptTokens",
      ${safeSum(cached)} as "fromCacheTokens",
      coalesce(${safeSum(log.outputTokens)}, 0) as "outputTokens"
      from ${log} where ${where ?? sql`true`} group by ${sql.join(places, sql`, `)}`,
    texts,
  );
  return found.map(({ client, requestClass, backend, modelSent, isRefused, ruleBits, ...sum }) =>
    Object.assign(sum, {
      client: client || null,
      requestClass: requestClass || null,
      backend: backend || null,
      modelSent: modelSent || null,
      isRefused: isRefused === 1,
      clientRules: clientRulesOf(ruleBits),
    }),
  );
}
