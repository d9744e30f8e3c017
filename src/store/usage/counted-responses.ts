import { createHash } from "node:crypto";
import { and, eq, gt, inArray, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import type { UsageStore } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import { noUsage, type Usage, type ResponseUsage } from "../../domain/usage.ts";

/** What is stored of the creates and reads of one key under one id. */
interface Counted extends Usage {
  idHash: string;
  keyId: KeyId;
  creates: number;
  madeAt: number | null;
  estimatedTokens: number;
  /** When the latest create closed, or the latest read was counted, epoch milliseconds. */
  countedAt: number;
}

/** What a read adds. */
export interface AddedUsage extends Usage {
  /** Unset: nothing. */
  givenBack?: { tokens: number; chargedAt: number };
}

export interface CountedResponses {
  /**
   * Remembers creates and the usage of reads, within a transaction.
   *
   * A create has counted by itself, and a read counts what it shows above that: nothing for most, everything for one that
   * ran in the background. If a read may show one of several creates, each read counts in full: else a client that chooses
   * ids would pay for one response and read many. These are the creates of its own key, and those of other keys that were
   * made at the same time, since a key is shown no others (`proxy/request/stored-response.ts`).
   *
   * What a create was charged by an estimate is given back by the first read of its key that reports tokens.
   * @returns the tokens that each of them adds
   */
  count(responses: readonly ResponseUsage[], now: number): Promise<AddedUsage[]>;
}

export function prepareCountedResponses(engine: Engine): CountedResponses {
  const { findAll, add } = prepareStatements(engine);
  const addRows = async (rows: readonly Row[]): Promise<void> => {
    if (rows.length > 0) await add.execute({ rows: jsonOf(rows) });
  };

  return {
    async count(responses, now) {
      const rows = responses.map((response) => rowOf(response, now));
      const reads = rows.filter(({ isRead }) => isRead);
      await addRows(rows.filter(({ isRead }) => !isRead));
      if (reads.length === 0) return rows.map(() => noUsage);
      // Another instance may count the same ones at this moment.
      await engine.lock("counted_responses");
      const found = await findAll.execute({ rows: JSON.stringify(reads.map(({ idHash }) => [idHash])) });
      await addRows(reads);
      const known = Map.groupBy(found, ({ idHash }) => idHash);
      return rows.map((row) => (row.isRead ? addedBy(row, known.get(row.idHash) ?? []) : noUsage));
    },
  };
}

export function prepareListCreators({ db, tables }: Engine): UsageStore["listCreators"] {
  const { idHash, keyId, madeAt, creates, backend } = tables.countedResponses;
  const query = db
    .select({ keyId, madeAt, backend })
    .from(tables.countedResponses)
    .where(and(eq(idHash, sql.placeholder("idHash")), gt(creates, 0)))
    .prepare();
  return (responseId) => query.execute({ idHash: hashOf(responseId) });
}

interface Row extends Counted {
  isRead: boolean;
  backend: string | null;
}

const rowOf = ({ responseId, keyId, created, estimatedTokens = 0, ...response }: ResponseUsage, now: number): Row => ({
  idHash: hashOf(responseId),
  keyId,
  creates: created?.count ?? 0,
  madeAt: created?.madeAt ?? null,
  inputTokens: response.inputTokens,
  outputTokens: response.outputTokens,
  estimatedTokens,
  // Its estimate is charged to that day.
  countedAt: created === undefined ? now : response.closedAt,
  isRead: created === undefined,
  backend: created?.backend ?? null,
});

/** 128 bits: two ids share a hash once in 10^20 pairs. */
const hashOf = (id: string): string => createHash("sha256").update(id).digest().subarray(0, 16).toString("base64url");

/** Columns in the order that the statements read; rows sorted, so that concurrent flushes lock them in the same order. */
const jsonOf = (rows: readonly Row[]): string =>
  JSON.stringify(
    rows
      .toSorted((a, b) => (a.idHash === b.idHash ? a.keyId - b.keyId : a.idHash < b.idHash ? -1 : 1))
      .map((row) => [
        row.idHash,
        row.keyId,
        row.creates,
        row.madeAt,
        row.inputTokens,
        row.outputTokens,
        row.estimatedTokens,
        row.countedAt,
        row.backend,
      ]),
  );

function addedBy(read: Row, known: readonly Counted[]): AddedUsage {
  const added = excessOf(read, countedBefore(read.keyId, known));
  const own = known.find(({ keyId }) => keyId === read.keyId);
  // A read shows one of several creates under one id, and the others were spent too.
  if (own?.creates !== 1 || own.estimatedTokens === 0) return added;
  return { ...added, givenBack: { tokens: own.estimatedTokens, chargedAt: own.countedAt } };
}

/** @param known what is stored under the id; key 0 stands for what was counted before keys were stored */
function countedBefore(keyId: KeyId, known: readonly Counted[]): Usage {
  const madeAt = known.find((one) => one.keyId === keyId)?.madeAt ?? null;
  const creates = known.reduce((sum, one) => {
    return one.keyId === keyId || one.madeAt === madeAt ? sum + one.creates : sum;
  }, 0);
  if (creates > 1) return noUsage;
  return known.filter((one) => one.keyId === keyId || (one.keyId === 0 && creates === 0)).reduce<Usage>(maxOf, noUsage);
}

const maxOf = (a: Usage, b: Usage): Usage => ({
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
  const { idHash, keyId, creates, madeAt, inputTokens, outputTokens, estimatedTokens, countedAt, backend } = table;
  const rows = jsonRows(sql.placeholder("rows"));
  const bigints = sql.raw([1, 2, 3, 4, 5, 6, 7].map((position) => `cast(value->>${position} as bigint)`).join());
  /** The first create forgets what the key has read before under the same id: that was another response. */
  const raised = (name: string) =>
    sql.raw(`case when excluded.${name} > counted_responses.${name} or counted_responses.creates = 0 and excluded.creates > 0
      then excluded.${name} else counted_responses.${name} end`);

  return {
    findAll: db
      .select({ idHash, keyId, creates, madeAt, inputTokens, outputTokens, estimatedTokens, countedAt })
      .from(table)
      .where(inArray(idHash, sql`(select value->>0 from ${rows})`))
      .prepare(),
    add: db
      .insert(table)
      // Without "where true", SQLite takes the "on" of "on conflict" for a join's.
      .select(sql`select value->>0, ${bigints}, value->>8 from ${rows} where true`)
      .onConflictDoUpdate({
        target: [idHash, keyId],
        set: {
          creates: sql`${creates} + excluded.creates`,
          madeAt: sql`coalesce(excluded.made_at, ${madeAt})`,
          inputTokens: raised("input_tokens"),
          outputTokens: raised("output_tokens"),
          estimatedTokens: sql`case when excluded.creates = 0 and excluded.estimated_tokens = 0 then 0
            else ${estimatedTokens} + excluded.estimated_tokens end`,
          countedAt: sql`excluded.counted_at`,
          backend: sql`coalesce(excluded.backend, ${backend})`,
        },
      })
      .prepare(),
  };
}
