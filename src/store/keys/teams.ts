import { and, asc, count, eq, ne, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { RecordChange } from "../accounts/audit.ts";
import type { Engine } from "../engine/engine.ts";
import { type KeyLimits, type SubjectId, subjectOfTeam, type TeamId } from "../../domain/keys.ts";
import { hasLimit, perLimit } from "../../domain/limits.ts";
import type { Team, TeamChange, TeamStore } from "./contract.ts";
import { parseRules } from "./rules.ts";

export function createTeamStore({ db, lock, tables }: Engine, record: RecordChange): TeamStore {
  const { subjects, keys, deletedKeys } = tables;

  async function isTaken(name: string, id: TeamId): Promise<boolean> {
    const others = and(eq(subjects.name, name), ne(subjects.id, id));
    return (await db.select({ id: subjects.id }).from(subjects).where(others).limit(1)).length > 0;
  }

  async function list(id?: TeamId): Promise<Team[]> {
    const all = db.select().from(subjects).orderBy(asc(subjects.id));
    const rows = await (id === undefined ? all : all.where(eq(subjects.id, id)));
    const members = await db.select({ id: keys.teamId, keys: count() }).from(keys).groupBy(keys.teamId);
    const counts = new Map(members.map((one) => [one.id, one.keys]));
    return rows.map((row) =>
      Object.assign(row, {
        limits: limitsOf(row.rules),
        tags: JSON.parse(row.tags ?? "[]") as string[],
        keyCount: counts.get(row.id) ?? 0,
      }),
    );
  }

  const readOf = (id: TeamId) => async () => stateOf((await list(id))[0]);

  return {
    list,
    create: ({ name, createdAt, ...fields }, by) =>
      record(by, stateOf, async () => {
        await lock("teams");
        if (await isTaken(name, 0)) return "collision";
        const [created] = await db
          .insert(subjects)
          .values({ kind: "team", name, createdAt, ...columnsOf(fields, null) })
          .returning({ id: subjects.id });
        return (await list(created?.id))[0] ?? "collision";
      }),
    update: (id, change, by) =>
      record(by, readOf(id), async () => {
        await lock("teams");
        const [before] = await db.select().from(subjects).where(eq(subjects.id, id)).limit(1);
        if (before === undefined) return undefined;
        if (change.name !== undefined && (await isTaken(change.name, id))) return "collision";
        await db.update(subjects).set(columnsOf(change, before.rules)).where(eq(subjects.id, id));
        return (await list(id))[0];
      }),
    delete: (id, by) =>
      record(by, readOf(id), async () => {
        await lock("teams");
        const [deleted] = await db.delete(subjects).where(eq(subjects.id, id)).returning({ name: subjects.name });
        if (deleted === undefined) return undefined;
        await db.update(keys).set({ teamId: null }).where(eq(keys.teamId, id));
        await db.insert(deletedKeys).values({ id: subjectOfTeam(id), name: deleted.name });
        return deleted.name;
      }),
  };
}

/** What the record of changes shows. */
async function stateOf(team: Team | "collision" | undefined): Promise<Record<string, unknown>> {
  if (typeof team !== "object") return {};
  const { name, note, tags, limits } = team;
  return { name, note, tags, ...limits };
}

const limitsOf = (rules: string | null): KeyLimits => {
  const all = parseRules(rules ?? "{}");
  return { ...perLimit((name) => all[name]), limits_extra: all.limits_extra ?? null };
};

/** @param before the JSON of the limits so far */
function columnsOf({ limits, tags, ...fields }: TeamChange, before: string | null) {
  const all = { ...limitsOf(before), ...limits };
  return {
    ...fields,
    ...(tags !== undefined && { tags: tags.length === 0 ? null : JSON.stringify(tags) }),
    rules: hasLimit(all) ? JSON.stringify(all) : null,
  };
}

/** The names of some keys and teams, the last ones of those that are deleted. */
export async function findNames({ db, tables }: Engine, ids: readonly SubjectId[]): Promise<[SubjectId, string][]> {
  if (ids.length === 0) return [];
  const { keys, deletedKeys, subjects } = tables;
  const isWanted = (column: SQLWrapper): SQL => sql`${column} in ${[...ids]}`;
  const team = sql`-${subjects.id}`;
  const found = await Promise.all([
    db.select().from(deletedKeys).where(isWanted(deletedKeys.id)),
    db.select({ id: keys.id, name: keys.name }).from(keys).where(isWanted(keys.id)),
    db
      .select({ id: team.mapWith(Number), name: subjects.name })
      .from(subjects)
      .where(isWanted(team)),
  ]);
  return found.flat().map(({ id, name }) => [id, name]);
}
