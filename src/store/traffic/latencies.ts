import { inArray, sql } from "drizzle-orm";
import { addEncoded, decodeHistogram, encodeSum } from "../../domain/histogram.ts";
import { minutesPerHour } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { limitHourlyModel } from "../usage/model-names.ts";
import { cleanText, maxModelLength } from "../requests/row.ts";
import type { StoredLatency } from "./contract.ts";

type LatencyTable = Engine["tables"]["latencyMinute"];
type LatencySums = Omit<StoredLatency, "minute" | "model">;
/** The sums of a model in a period: a minute or an hour. */
type Sum = LatencySums & { period: number; model: string };

export const hourOf = (minute: number): number => Math.floor(minute / minutesPerHour);

/**
 * Adds latencies to their minutes and hours, within a transaction that others wait for. Histograms are merged here and not
 * in SQL: there are few of them, and they are written every few seconds.
 */
export function prepareLatencies(engine: Engine): (latencies: readonly StoredLatency[]) => Promise<void> {
  const { latencyMinute, latencyHour } = engine.tables;
  const addMinutes = prepareAdding(engine, latencyMinute, latencyMinute.minute);
  const addHours = prepareAdding(engine, latencyHour as never, latencyHour.hour as never);
  const findModels = prepareFindModels(engine);

  return async (latencies) => {
    if (latencies.length === 0) return;
    const models = await findModels([...new Set(latencies.map(({ minute }) => hourOf(minute)))]);
    const sums = latencies.map(({ minute, model, ...sum }) =>
      Object.assign(sum, { minute, model: limitHourlyModel(models, hourOf(minute), cleanText(model, maxModelLength)) }),
    );
    await addMinutes(sums.map(({ minute, ...sum }) => Object.assign(sum, { period: minute })));
    await addHours(sums.map(({ minute, ...sum }) => Object.assign(sum, { period: hourOf(minute) })));
  };
}

function prepareFindModels({ db, tables: { latencyHour }, jsonRows }: Engine) {
  const { hour, model } = latencyHour;
  const query = db
    .select({ hour, model })
    .from(latencyHour)
    .where(inArray(hour, sql`(select cast(value->>0 as bigint) from ${jsonRows(sql.placeholder("hours"))})`))
    .prepare();
  return async (hours: readonly number[]): Promise<Map<number, Set<string>>> => {
    const models = new Map<number, Set<string>>();
    for (const row of await query.execute({ hours: JSON.stringify(hours.map((one) => [one])) })) {
      models.set(row.hour, (models.get(row.hour) ?? new Set()).add(row.model));
    }
    return models;
  };
}

function prepareAdding(
  { db, jsonRows }: Engine,
  table: LatencyTable,
  period: LatencyTable["minute"],
): (added: readonly Sum[]) => Promise<void> {
  const { model, requestCount, firstByte, duration, tokensPerSecond, queueWait } = table;
  const rows = jsonRows(sql.placeholder("rows"));
  const find = db
    .select({ period, model, requestCount, firstByte, duration, tokensPerSecond, queueWait })
    .from(table)
    .where(sql`(${period}, ${model}) in (select cast(value->>0 as bigint), value->>1 from ${rows})`)
    .prepare();
  const replace = db
    .insert(table)
    .select(
      sql`select cast(value->>0 as bigint), value->>1, cast(value->>2 as bigint), value->>3, value->>4, value->>5, value->>6
        from ${rows} where true`,
    )
    .onConflictDoUpdate({
      target: [period, model],
      set: {
        requestCount: sql`excluded.request_count`,
        firstByte: sql`excluded.first_byte`,
        duration: sql`excluded.duration`,
        tokensPerSecond: sql`excluded.tokens_per_second`,
        queueWait: sql`excluded.queue_wait`,
      },
    })
    .prepare();

  return async (added) => {
    const names = added.map((one) => [one.period, one.model]);
    const sums = new Map((await find.execute({ rows: JSON.stringify(names) })).map((row) => [idOf(row), row]));
    for (const one of added) {
      const sum = sums.get(idOf(one));
      sums.set(idOf(one), sum === undefined ? one : Object.assign(sum, mergeSums(sum, one)));
    }
    const values = Array.from(sums.values(), (sum) => [
      sum.period,
      sum.model,
      sum.requestCount,
      sum.firstByte,
      sum.duration,
      sum.tokensPerSecond,
      sum.queueWait,
    ]);
    await replace.execute({ rows: JSON.stringify(values) });
  };
}

const idOf = ({ period, model }: Pick<Sum, "period" | "model">): string => `${period} ${model}`;

const mergeSums = (a: LatencySums, b: LatencySums): LatencySums => ({
  requestCount: a.requestCount + b.requestCount,
  firstByte: merge(a.firstByte, b.firstByte),
  duration: merge(a.duration, b.duration),
  tokensPerSecond: merge(a.tokensPerSecond, b.tokensPerSecond),
  queueWait: merge(a.queueWait, b.queueWait),
});

function merge(a: string, b: string): string {
  const sum = decodeHistogram(a);
  addEncoded(sum, b);
  return encodeSum(sum);
}
