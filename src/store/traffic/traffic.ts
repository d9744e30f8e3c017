import { type SQL, sql } from "drizzle-orm";
import { minutesPerHour } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { prepareLatencies } from "./latencies.ts";
import { listLatencies } from "./latency-reads.ts";
import { sumOutcomes } from "./outcome-reads.ts";
import type { StoredOutcome, TrafficStore, BackendFigures, StoredBackend } from "./contract.ts";
import { backendCountNames } from "../../domain/backends.ts";
import { addEncoded, decodeHistogram, encodeSum } from "../../domain/histogram.ts";

export function createTrafficStore(engine: Engine): TrafficStore {
  const { transaction, lock, pipeline } = engine;
  const addLatencies = prepareLatencies(engine);
  const addOutcomes = prepareOutcomes(engine);
  const addBackends = prepareBackends(engine);

  return {
    add: ({ latencies, outcomes, backends }) =>
      transaction(async () => {
        await lock("traffic");
        await addLatencies(latencies);
        await addBackends(backends);
        if (outcomes.length > 0) await pipeline(addOutcomes(outcomes));
      }),
    latencies: (range, filter) => listLatencies(engine, range, filter),
    outcomes: (range, limit, keyId) => sumOutcomes(engine, range, limit, keyId),
    backends: (from, to) => sumBackends(engine, from, to),
  };
}

function prepareOutcomes({ db, tables, jsonRows }: Engine): (outcomes: readonly StoredOutcome[]) => Statement[] {
  const { outcomeMinute, outcomeHour } = tables;
  const rows = jsonRows(sql.placeholder("rows"));
  const number = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const addTo = (table: typeof outcomeMinute, period: unknown, periodOfRow: SQL) =>
    db
      .insert(table)
      .select(
        sql`select ${periodOfRow}, ${number(1)}, value->>2, value->>3, sum(${number(4)}), max(${number(5)})
          from ${rows} where true group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
      )
      .onConflictDoUpdate({
        target: [period, table.keyId, table.outcome, table.code] as never,
        set: {
          count: sql`${table.count} + excluded.count`,
          lastAt: sql`case when excluded.last_at > ${table.lastAt} then excluded.last_at else ${table.lastAt} end`,
        },
      })
      .prepare();
  const statements = [
    addTo(outcomeMinute, outcomeMinute.minute, number(0)),
    addTo(outcomeHour as never, outcomeHour.hour, sql`${number(0)} / ${minutesPerHour}`),
  ];
  return (outcomes) => {
    const json = JSON.stringify(
      outcomes.map((one) => [one.minute, one.keyId, one.outcome, one.code, one.count, one.lastAt]),
    );
    return statements.map((statement) => () => statement.execute({ rows: json }));
  };
}

const columns = ["minute", "backend", ...backendCountNames, "firstByte"] as const;

/** Adds to the minutes of backends, within a transaction that others wait for. There are few: histograms are merged here. */
function prepareBackends({
  db,
  jsonRows,
  prepareInsert,
  prepareDelete,
  pipeline,
  tables: { backendMinute: table },
}: Engine): (added: readonly StoredBackend[]) => Promise<void> {
  const rows = jsonRows(sql.placeholder("rows"));
  const find = db
    .select()
    .from(table)
    .where(sql`(${table.minute}, ${table.backend}) in (select cast(value->>0 as bigint), value->>1 from ${rows})`)
    .prepare();
  const remove = prepareDelete(table, ["minute", "backend"]);
  const insert = prepareInsert(table, columns);

  return async (added) => {
    if (added.length === 0) return;
    const names = added.map(({ minute, backend }): [number, string] => [minute, backend]);
    const found = await find.execute({ rows: JSON.stringify(names) });
    const before = new Map(found.map((row) => [idOf(row), row]));
    const sums = added.map((one) => add(one, before.get(idOf(one))));
    await pipeline([remove(names), insert(sums.map((sum) => columns.map((name) => sum[name])))]);
  };
}

const idOf = ({ minute, backend }: Pick<StoredBackend, "minute" | "backend">): string => `${minute} ${backend}`;

function add(added: StoredBackend, before: StoredBackend | undefined): StoredBackend {
  if (before === undefined) return added;
  const firstByte = decodeHistogram(before.firstByte);
  addEncoded(firstByte, added.firstByte);
  const sums = backendCountNames.map((name) => [name, before[name] + added[name]] as const);
  return { ...added, ...Object.fromEntries(sums), firstByte: encodeSum(firstByte) };
}

/** @param to exclusive */
async function sumBackends(
  { rows, tables: { backendMinute: table } }: Engine,
  from: number,
  to: number,
): Promise<BackendFigures[]> {
  const found = await rows<StoredBackend>(
    sql`select ${sql.join(
      columns.map((name) => sql`${table[name]} as ${sql.identifier(name)}`),
      sql`, `,
    )} from ${table} where ${table.minute} >= ${from} and ${table.minute} < ${to} order by ${table.backend}`,
    ["backend", "firstByte"],
  );
  const sums = new Map<string, StoredBackend>();
  for (const row of found) sums.set(row.backend, add(row, sums.get(row.backend)));
  return Array.from(sums.values(), ({ minute: _minute, ...figures }) => figures);
}
