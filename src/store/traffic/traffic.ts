import { type SQL, sql } from "drizzle-orm";
import { minutesPerHour } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { mergeRows, prepareLatencies, prepareMerging } from "./latencies.ts";
import { listLatencies } from "./latency-reads.ts";
import { sumOutcomes } from "./outcome-reads.ts";
import type { TrafficStore, StoredBackend } from "./contract.ts";
import { backendCountNames } from "../../domain/backends.ts";
import type { OutcomeSum } from "../../domain/requests.ts";

export function createTrafficStore(engine: Engine): TrafficStore {
  const { transaction, lock, pipeline } = engine;
  const addLatencies = prepareLatencies(engine);
  const addOutcomes = prepareOutcomes(engine);
  const addBackends = prepareMerging(engine, engine.tables.backendMinute, columns);

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
    backends: (...range) => sumBackends(engine, ...range),
  };
}

function prepareOutcomes({ db, tables, jsonRows }: Engine): (outcomes: readonly OutcomeSum[]) => Statement[] {
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

async function sumBackends(
  { rows, tables: { backendMinute: table } }: Engine,
  from: number,
  to: number,
  bucketMinutes = to - from,
): Promise<StoredBackend[]> {
  const found = await rows<StoredBackend>(
    sql`select ${sql.join(
      columns.map((name) => sql`${table[name]} as ${sql.identifier(name)}`),
      sql`, `,
    )} from ${table} where ${table.minute} >= ${from} and ${table.minute} < ${to} order by ${table.backend}`,
    ["backend", "firstByte"],
  );
  const sums = new Map<string, StoredBackend>();
  for (const row of found) {
    const minute = row.minute - ((row.minute - from) % bucketMinutes);
    const id = `${minute} ${row.backend}`;
    sums.set(id, mergeRows({ ...row, minute }, sums.get(id), columns.slice(0, 2)));
  }
  return [...sums.values()];
}
