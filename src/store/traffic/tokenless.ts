import { sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import { limitHourlyModel } from "../usage/model-names.ts";
import { cleanText, maxModelLength } from "../requests/row.ts";
import type { StoredTokenless } from "./contract.ts";

const maxPathLength = 100;

/** Adds responses without tokens to their hours, within a transaction that others wait for. */
export function prepareTokenless(engine: Engine): (tokenless: readonly StoredTokenless[]) => Promise<void> {
  const addRows = prepareAdding(engine);
  const findModels = prepareFindModels(engine);

  return async (tokenless) => {
    if (tokenless.length === 0) return;
    const models = await findModels(tokenless);
    const limited = tokenless.map((one) => ({
      ...one,
      model: limitHourlyModel(models, groupOf(one), cleanText(one.model, maxModelLength)),
    }));
    await addRows(limited);
  };
}

const groupOf = ({ hour, keyId }: Pick<StoredTokenless, "hour" | "keyId">): string => `${hour} ${keyId}`;

/** The names that the database has, by hour and key. */
function prepareFindModels({ db, tables: { tokenlessHour }, jsonRows }: Engine) {
  const { hour, keyId, model } = tokenlessHour;
  const groups = jsonRows(sql.placeholder("groups"));
  const query = db
    .selectDistinct({ hour, keyId, model })
    .from(tokenlessHour)
    .where(sql`(${hour}, ${keyId}) in (select cast(value->>0 as bigint), cast(value->>1 as bigint) from ${groups})`)
    .prepare();
  return async (tokenless: readonly StoredTokenless[]): Promise<Map<string, Set<string>>> => {
    const groupsOfRows = JSON.stringify(tokenless.map((one) => [one.hour, one.keyId]));
    const models = new Map<string, Set<string>>();
    for (const row of await query.execute({ groups: groupsOfRows })) {
      models.set(groupOf(row), (models.get(groupOf(row)) ?? new Set()).add(row.model));
    }
    return models;
  };
}

function prepareAdding({ db, tables: { tokenlessHour }, jsonRows }: Engine) {
  const number = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const { hour, keyId, model, path, requestCount, streamedCount } = tokenlessHour;
  const statement = db
    .insert(tokenlessHour)
    .select(
      sql`select ${number(0)}, ${number(1)}, value->>2, value->>3, sum(${number(4)}), sum(${number(5)})
        from ${jsonRows(sql.placeholder("rows"))} where true group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
    )
    .onConflictDoUpdate({
      target: [hour, keyId, model, path],
      set: {
        requestCount: sql`${requestCount} + excluded.request_count`,
        streamedCount: sql`${streamedCount} + excluded.streamed_count`,
      },
    })
    .prepare();
  return async (rows: readonly StoredTokenless[]): Promise<void> => {
    const values = rows.map((one) => [
      one.hour,
      one.keyId,
      one.model,
      cleanText(one.path, maxPathLength),
      one.requestCount,
      one.streamedCount,
    ]);
    await statement.execute({ rows: JSON.stringify(values) });
  };
}
