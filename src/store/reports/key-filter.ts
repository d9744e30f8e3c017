import { isNotNull, or, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { UsageFilter } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Engine } from "../engine/engine.ts";
import { findNames } from "../keys/subjects.ts";

/** The columns of a table of usage that filters compare; those of keys alone have but the first. */
export interface FilteredColumns {
  keyId: SQLWrapper;
  teamId?: SQLWrapper;
  userId?: SQLWrapper;
  model?: SQLWrapper;
}

export type UsageCondition = (columns: FilteredColumns) => SQL;

/** The owner and the tags of keys that have some. */
export type Labels = ReadonlyMap<KeyId, { owner: string | null; tags: readonly string[] }>;

interface DatedLabels {
  /** The days, as numbers, from which on some are others. */
  changedOn: number[];
  on: (day: number) => Labels;
}

export const noLabels: DatedLabels = { changedOn: [], on: () => new Map() };

export async function readLabels({ db, tables: { keys, keyLabels } }: Engine): Promise<DatedLabels> {
  const current = await db
    .select({ keyId: keys.id, owner: keys.owner, tags: keys.tags })
    .from(keys)
    .where(or(isNotNull(keys.owner), isNotNull(keys.tags)));
  const dated = await db.select().from(keyLabels).orderBy(keyLabels.fromDay);
  return {
    changedOn: [...new Set(dated.map(({ fromDay }) => fromDay))],
    on: (day) =>
      new Map(
        [...current, ...dated.filter(({ fromDay }) => fromDay <= day)].map(({ keyId, owner, tags }) => [
          keyId,
          { owner, tags: JSON.parse(tags ?? "[]") as string[] },
        ]),
      ),
  };
}

/** The tags, or the owner, of a key; without any, the empty text. */
export function labelsOf(labels: Labels, keyId: KeyId, kind: "tag" | "owner"): readonly string[] {
  const { owner = null, tags = [] } = labels.get(keyId) ?? {};
  if (kind === "owner") return [owner ?? ""];
  return tags.length === 0 ? [""] : tags;
}

export const hasLabels = (labels: Labels, kind: "tag" | "owner"): boolean =>
  labels.keys().some((id) => labelsOf(labels, id, kind)[0] !== "");

export const isByLabel = ({ tag, owner }: UsageFilter): boolean => tag !== undefined || owner !== undefined;

/** @param labels of the days that the condition is for */
export const usageCondition =
  (filter: UsageFilter, labels: Labels): UsageCondition =>
  (columns) => {
    const conditions = (["keyId", "teamId", "userId", "model"] as const).flatMap((name) => {
      const [column, wanted] = [columns[name], filter[name]];
      return column === undefined || wanted === undefined ? [] : [sql`${column} = ${wanted}`];
    });
    for (const kind of ["tag", "owner"] as const) {
      const wanted = filter[kind];
      if (wanted === undefined) continue;
      const ids = [...labels.keys()].filter((id) => labelsOf(labels, id, kind).includes(wanted) === (wanted !== ""));
      const isIn = ids.length === 0 ? sql`1 = 0` : sql`${columns.keyId} in ${ids}`;
      conditions.push(wanted === "" ? sql`not (${isIn})` : isIn);
    }
    return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` and `);
  };

/** The name of a key as JSON. */
export type GetKeyName = (keyId: KeyId) => string;

/** Reads each name once per report; a deleted key has its last name. */
export function createNameReader(engine: Engine): (rows: readonly { keyId: KeyId }[]) => Promise<GetKeyName> {
  const names = new Map<KeyId, string>();
  return async (rows) => {
    const missing = new Set(rows.map(({ keyId }) => keyId)).difference(names);
    for (const [id, name] of await findNames(engine, [...missing])) names.set(id, JSON.stringify(name));
    return (keyId) => names.get(keyId) ?? '""';
  };
}
