import { and, lt, type SQL, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { minuteOf, minutesPerDay, minutesPerHour } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { hourOf, prepareLatencies } from "./latencies.ts";
import { prepareTokenless } from "./tokenless.ts";
import { createTrafficReads } from "./reads.ts";
import type { StoredOutcome, TrafficStore } from "./contract.ts";

const retentionMinutes = 31 * minutesPerDay;
/** Limits what one call deletes. */
const maxPrunedMinutes = 2 * minutesPerHour;

export function createTrafficStore(engine: Engine, clock: WallClock): TrafficStore {
  const { transaction, lock, pipeline } = engine;
  const addLatencies = prepareLatencies(engine);
  const addOutcomes = prepareOutcomes(engine);
  const addTokenless = prepareTokenless(engine);
  const prune = preparePruning(engine);
  let prunedHour = 0;
  const pruneOncePerHour = (minute: number): Statement[] => {
    if (hourOf(minute) === prunedHour) return [];
    prunedHour = hourOf(minute);
    return prune(minute - retentionMinutes);
  };

  return {
    add: ({ latencies, outcomes, tokenless }) =>
      transaction(async () => {
        await lock("traffic");
        await addLatencies(latencies);
        await addTokenless(tokenless);
        await pipeline([
          ...(outcomes.length === 0 ? [] : addOutcomes(outcomes)),
          ...pruneOncePerHour(minuteOf(clock())),
        ]);
      }),
    ...createTrafficReads(engine),
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

function preparePruning({ db, tables }: Engine): (before: number) => Statement[] {
  const { latencyMinute, latencyHour, outcomeMinute, outcomeHour, tokenlessHour } = tables;
  const pruneBy = (table: typeof latencyMinute, period: typeof latencyMinute.minute, unit: number) => {
    const oldest = sql`(select min(${period}) + ${maxPrunedMinutes / unit} from ${table})`;
    const statement = db
      .delete(table)
      .where(and(lt(period, sql.placeholder("before")), lt(period, oldest)))
      .prepare();
    return (before: number): Statement =>
      () =>
        statement.execute({ before: Math.floor(before / unit) });
  };
  const all = [
    pruneBy(latencyMinute, latencyMinute.minute, 1),
    pruneBy(outcomeMinute as never, outcomeMinute.minute as never, 1),
    pruneBy(latencyHour as never, latencyHour.hour as never, minutesPerHour),
    pruneBy(outcomeHour as never, outcomeHour.hour as never, minutesPerHour),
    pruneBy(tokenlessHour as never, tokenlessHour.hour as never, minutesPerHour),
  ];
  return (before) => all.map((prune) => prune(before));
}
