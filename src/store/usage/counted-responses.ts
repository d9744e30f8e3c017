import { createHash } from "node:crypto";
import { and, inArray, lt, sql } from "drizzle-orm";
import { noUsage } from "../../domain/usage.ts";
import { type Usage } from "../../domain/usage.ts";
import { msPerMinute, minutesPerDay } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import type { ResponseUsage } from "./contract.ts";

/** Backends keep responses for 30 days at most. */
const retentionMs = 31 * minutesPerDay * msPerMinute;
/** Limits what one prune deletes. */
const maxPrunedMs = 5 * msPerMinute;

/** A response as it is stored. */
interface Counted extends Usage {
  idHash: string;
}

export interface CountedResponses {
  /**
   * Remembers the usage of responses, within a transaction.
   * @returns for each response the tokens above those that were counted for its id before
   */
  count(responses: readonly ResponseUsage[], now: number): Promise<Usage[]>;
  prune(now: number): Statement;
}

export function prepareCountedResponses(engine: Engine): CountedResponses {
  const { insertNew, findAll, replace, prune } = prepareStatements(engine);

  /** The rows of responses that were counted before. Locked: another instance may count the same ones at this moment. */
  async function findKnown(rows: readonly Counted[]): Promise<Map<string, Counted>> {
    await engine.lock("counted_responses");
    const found = await findAll.execute({ rows: JSON.stringify(rows.map(({ idHash }) => [idHash])) });
    return new Map(found.map((row) => [row.idHash, row]));
  }

  return {
    async count(responses, now) {
      const rows = responses.map((one) => ({ ...one, idHash: hashOf(one.responseId) }));
      const inserted = await insertNew.execute({ rows: jsonOf(rows, now) });
      const isNew = new Set(inserted.map(({ idHash }) => idHash));
      const others = rows.filter(({ idHash }) => !isNew.has(idHash));
      if (others.length === 0) return rows.map((row) => excessOf(row, noUsage));
      const known = await findKnown(others);
      const raised = others.map((row) => maxOf(row, known.get(row.idHash) ?? noUsage));
      await replace.execute({ rows: jsonOf(raised, now) });
      return rows.map((row) => excessOf(row, known.get(row.idHash) ?? noUsage));
    },
    prune: (now) => () => prune.execute({ before: now - retentionMs }),
  };
}

/** 128 bits: two ids share a hash once in 10^20 pairs. */
const hashOf = (id: string): string => createHash("sha256").update(id).digest().subarray(0, 16).toString("base64url");

/** Columns in the order that the statements read; rows sorted, so that concurrent flushes lock them in the same order. */
const jsonOf = (rows: readonly Counted[], now: number): string =>
  JSON.stringify(
    rows
      .map(({ idHash, inputTokens, outputTokens }) => [idHash, inputTokens, outputTokens, now] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );

const maxOf = (a: Counted, b: Usage): Counted => ({
  idHash: a.idHash,
  inputTokens: Math.max(a.inputTokens, b.inputTokens),
  outputTokens: Math.max(a.outputTokens, b.outputTokens),
});

const excessOf = (usage: Usage, counted: Usage): Usage => ({
  inputTokens: Math.max(0, usage.inputTokens - counted.inputTokens),
  outputTokens: Math.max(0, usage.outputTokens - counted.outputTokens),
});

/** Constant statements, however many responses: all rows are passed as one JSON parameter. */
// oxlint-disable-next-line typescript/explicit-function-return-type -- Drizzle's types of prepared statements
function prepareStatements({ db, tables, jsonRows }: Engine) {
  const { countedResponses: table } = tables;
  const rows = jsonRows(sql.placeholder("rows"));
  const bigintAt = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const insert = () =>
    db
      .insert(table)
      // Without "where true", SQLite takes the "on" of "on conflict" for a join's.
      .select(sql`select value->>0, ${bigintAt(1)}, ${bigintAt(2)}, ${bigintAt(3)} from ${rows} where true`);
  const { idHash, inputTokens, outputTokens, countedAt } = table;
  const before = sql.placeholder("before");

  return {
    insertNew: insert().onConflictDoNothing().returning({ idHash }).prepare(),
    findAll: db
      .select({ idHash, inputTokens, outputTokens })
      .from(table)
      .where(inArray(idHash, sql`(select value->>0 from ${rows})`))
      .prepare(),
    replace: insert()
      .onConflictDoUpdate({
        target: idHash,
        set: {
          inputTokens: sql`excluded.input_tokens`,
          outputTokens: sql`excluded.output_tokens`,
          countedAt: sql`excluded.counted_at`,
        },
      })
      .prepare(),
    prune: db
      .delete(table)
      .where(and(lt(countedAt, before), lt(countedAt, sql`(select min(counted_at) + ${maxPrunedMs} from ${table})`)))
      .prepare(),
  };
}
