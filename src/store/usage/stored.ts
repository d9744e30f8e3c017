// What backends store under ids. `owned` says whose an id is: the first row that is committed stands, whoever else makes the
// same id. `counted_responses` keeps the tokens that were counted of an id for a key, so that what is read again counts once.
// Both know ids by hashes only. A row of `owned` is kept for 400 days after its last use, the key deleted or not.

import { createHash } from "node:crypto";
import { count, eq, inArray, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import type { UsageStore } from "./contract.ts";
import { msPerDay } from "../../time/seoul.ts";
import { noUsage, type Usage, type ResponseUsage } from "../../domain/usage.ts";

/**
 * Notes what is owned, what creates reported and what was read, within a transaction.
 * @returns the tokens that each of them adds: a create has counted by itself, and a read what it shows above that
 */
export function prepareNotes(engine: Engine): (responses: readonly ResponseUsage[], now: number) => Promise<Usage[]> {
  const { own, create, read, findCounted } = prepareStatements(engine);
  return async (responses, now) => {
    const rows = responses.map((response) => ({ hash: hashOf(response.responseId), ...response }));
    const of = (wanted: ResponseUsage["as"]) => rows.filter(({ as }) => as === wanted);
    const write = async (statement: typeof own, noted: readonly Row[]): Promise<void> => {
      if (noted.length > 0) await statement.execute({ rows: jsonOf(noted, now) });
    };
    await write(own, of("owned"));
    await write(create, of("created"));
    const reads = of(undefined);
    if (reads.length === 0) return rows.map(() => noUsage);
    // Another instance may count the same ones at this moment.
    await engine.lock("counted_responses");
    const found = await findCounted.execute({ rows: JSON.stringify(reads.map(({ hash }) => [hash])) });
    await write(read, reads);
    const counted = new Map(found.map((one) => [`${one.idHash} ${one.keyId}`, one]));
    return rows.map((row) =>
      row.as === undefined ? excessOf(row, counted.get(`${row.hash} ${row.keyId}`) ?? noUsage) : noUsage,
    );
  };
}

/** Finds whose ids are, all in one query. */
export function prepareFindOwners({ db, tables, jsonRows }: Engine): UsageStore["findOwners"] {
  const { idHash, keyId, backend, usedAt } = tables.owned;
  const query = db
    .select({ idHash, keyId, backend, usedAt })
    .from(tables.owned)
    .where(inArray(idHash, sql`(select value->>0 from ${jsonRows(sql.placeholder("rows"))})`))
    .prepare();
  return async (ids) => {
    const hashes = ids.map(hashOf);
    const rows = await query.execute({ rows: JSON.stringify(hashes.map((hash) => [hash])) });
    const owners = new Map(rows.map((row) => [row.idHash, row]));
    return hashes.map((hash) => owners.get(hash));
  };
}

export function prepareCountOwned({ db, tables: { owned } }: Engine): UsageStore["countOwned"] {
  const query = db
    .select({ ids: count() })
    .from(owned)
    .where(eq(owned.keyId, sql.placeholder("keyId")))
    .prepare();
  return async (keyId) => (await query.execute({ keyId }))[0]?.ids ?? 0;
}

interface Row extends ResponseUsage {
  hash: string;
}

/** How old `usedAt` may be. */
const usedMs = msPerDay;

/** 128 bits: two ids share a hash once in 10^20 pairs. */
const hashOf = (id: string): string => createHash("sha256").update(id).digest().subarray(0, 16).toString("base64url");

/** Columns in the order that the statements read; rows sorted, so that concurrent flushes lock them in the same order. */
const jsonOf = (rows: readonly Row[], now: number): string =>
  JSON.stringify(
    rows
      .toSorted((a, b) => (a.hash === b.hash ? a.keyId - b.keyId : a.hash < b.hash ? -1 : 1))
      .map((row) => [row.hash, row.keyId, row.backend ?? null, now, row.inputTokens, row.outputTokens]),
  );

const excessOf = (usage: Usage, counted: Usage): Usage => ({
  inputTokens: Math.max(0, usage.inputTokens - counted.inputTokens),
  outputTokens: Math.max(0, usage.outputTokens - counted.outputTokens),
});

/** Constant statements, however many ids: all rows are passed as one JSON parameter. */
function prepareStatements({ db, tables: { owned, countedResponses }, jsonRows }: Engine) {
  const rows = jsonRows(sql.placeholder("rows"));
  const { idHash, keyId, inputTokens, outputTokens } = countedResponses;
  const insertCounted = (counted: (name: string) => string) =>
    db
      .insert(countedResponses)
      // Without "where true", SQLite takes the "on" of "on conflict" for a join's.
      .select(
        sql`select value->>0, cast(value->>1 as bigint), cast(value->>4 as bigint), cast(value->>5 as bigint),
          cast(value->>3 as bigint) from ${rows} where true`,
      )
      .onConflictDoUpdate({
        target: [idHash, keyId],
        set: {
          inputTokens: sql.raw(counted("input_tokens")),
          outputTokens: sql.raw(counted("output_tokens")),
          countedAt: sql`excluded.counted_at`,
        },
      })
      .prepare();
  return {
    own: db
      .insert(owned)
      .select(
        sql`select value->>0, cast(value->>1 as bigint), value->>2, cast(value->>3 as bigint) from ${rows} where true`,
      )
      .onConflictDoUpdate({
        target: owned.idHash,
        set: { backend: sql`coalesce(excluded.backend, ${owned.backend})`, usedAt: sql`excluded.used_at` },
        // That it is used is written once a day.
        setWhere: sql`${owned.keyId} = excluded.key_id and (${owned.usedAt} <= excluded.used_at - ${sql.raw(String(usedMs))}
          or ${owned.backend} is distinct from excluded.backend)`,
      })
      .prepare(),
    // Another response than what the key has read, or made, under this id before.
    create: insertCounted((name) => `excluded.${name}`),
    read: insertCounted(
      (name) => `case when excluded.${name} > counted_responses.${name}
        then excluded.${name} else counted_responses.${name} end`,
    ),
    findCounted: db
      .select({ idHash, keyId, inputTokens, outputTokens })
      .from(countedResponses)
      .where(inArray(idHash, sql`(select value->>0 from ${rows})`))
      .prepare(),
  };
}
