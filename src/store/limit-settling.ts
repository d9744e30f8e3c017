import { sql, type SQL } from "drizzle-orm";
import type { AdmissionId, KeyId } from "../domain.ts";
import type { Engine, Statement } from "./engine.ts";
import type { UsageIncrement } from "./usage-store.ts";

type Row = readonly (number | string)[];

/** All rows of a statement are passed as one JSON parameter, sorted, so that concurrent writers lock them in one order. */
export const jsonOf = (rows: readonly Row[]): string =>
  JSON.stringify(rows.toSorted(([a = 0], [b = 0]) => Number(a) - Number(b)));

export const integerAt = (position: number): SQL => sql`cast(value->>${sql.raw(String(position))} as bigint)`;

export function prepareGiveBack({
  db,
  tables: { admissions },
  jsonRows,
}: Engine): (ended: readonly AdmissionId[]) => Statement {
  const rows = jsonRows(sql.placeholder("rows"));
  const statement = db
    .delete(admissions)
    .where(
      sql`(${admissions.keyId}, ${admissions.instance}, ${admissions.number}) in
        (select ${integerAt(0)}, value->>1, ${integerAt(2)} from ${rows})`,
    )
    .prepare();
  return (ended) => {
    const json = jsonOf(ended.map(({ keyId, instance, number }) => [keyId, instance, number]));
    return () => statement.execute({ rows: json });
  };
}

export function prepareAddSeconds({ db, tables: { keySeconds }, jsonRows }: Engine) {
  const rows = jsonRows(sql.placeholder("rows"));
  return db
    .insert(keySeconds)
    .select(
      sql`select ${integerAt(0)}, ${integerAt(1)}, sum(${integerAt(2)}), sum(${integerAt(3)}) from ${rows}
        where true group by 1, 2 order by 1, 2`,
    )
    .onConflictDoUpdate({
      target: [keySeconds.keyId, keySeconds.second],
      set: {
        requests: sql`${keySeconds.requests} + excluded.requests`,
        tokens: sql`${keySeconds.tokens} + excluded.tokens`,
      },
    })
    .prepare();
}

/** What a flush does for the admissions that end with it: their reserved tokens become counted ones. */
export function prepareSettling(
  engine: Engine,
): (settled: readonly AdmissionId[], increments: readonly UsageIncrement[]) => Statement[] {
  const giveBack = prepareGiveBack(engine);
  const addSeconds = prepareAddSeconds(engine);
  return (settled, increments) => {
    if (settled.length === 0) return [];
    const keys = new Set<KeyId>(settled.map(({ keyId }) => keyId));
    const rows = increments
      .filter(({ keyId }) => keys.has(keyId))
      .map((one) => [one.keyId, Math.floor(one.lastClosedAt / 1000), 0, one.inputTokens + one.outputTokens]);
    const addTokens = (): PromiseLike<unknown> => addSeconds.execute({ rows: jsonOf(rows) });
    return [...(rows.length > 0 ? [addTokens] : []), giveBack(settled)];
  };
}
