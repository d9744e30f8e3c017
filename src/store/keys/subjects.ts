import { and, asc, count, eq, gt, inArray, ne, or, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { RecordChange } from "../accounts/audit.ts";
import type { Engine } from "../engine/engine.ts";
import type { WallClock } from "../../time/clock.ts";
import { defaultUsersMax, type KeyLimits, type SubjectId, subjectOf } from "../../domain/keys.ts";
import { hasLimit, perLimit } from "../../domain/limits.ts";
import type { SubjectChange, SubjectFilter, SubjectProblem, SubjectStore, TeamOrUser } from "./contract.ts";
import { parseRules } from "./rules.ts";

type Kind = TeamOrUser["kind"];
export type SubjectRow = Engine["tables"]["subjects"]["$inferSelect"];

/** Whether a key, team or user is there; null and undefined always are. Nobody deletes it until the transaction ends. */
export async function isThere(
  { db, lock, tables: { keys, subjects } }: Engine,
  kind: Kind | "key",
  id: number | null = null,
  isActive?: true,
): Promise<boolean> {
  if (id === null) return true;
  await lock("subjects");
  const table = kind === "key" ? keys : subjects;
  const isActiveToo = isActive && eq(table.isActive, true);
  const isOfKind = kind === "key" ? undefined : eq(subjects.kind, kind);
  const found = db.select({ id: table.id }).from(table);
  return (await found.where(and(eq(table.id, id), isOfKind, isActiveToo))).length > 0;
}

/** Users are linked once, and not in a chain; one that a client names without a proof is no one who signed in. */
async function problemOfLink(
  engine: Engine,
  { id, keyId }: SubjectRow,
  as: number | null = null,
): Promise<SubjectProblem | undefined> {
  if (as === null) return undefined;
  const { subjects, keys } = engine.tables;
  const find = finder(engine);
  const other = await find(eq(subjects.kind, "user"), eq(subjects.id, as));
  const isLinked = (await find(eq(subjects.sameAs, id))) !== undefined;
  if (other === undefined || other.sameAs !== null || as === id || isLinked) return "no user";
  if (other.signedInAt === null || keyId === null) return undefined;
  const [key] = await engine.db.select({ rules: keys.rules }).from(keys).where(eq(keys.id, keyId));
  return parseRules(key?.rules ?? "{}").users_secrets === null ? "unsigned" : undefined;
}

export function createSubjectStore(engine: Engine, clock: WallClock, record: RecordChange): Omit<SubjectStore, "see"> {
  const { db, lock, tables } = engine;
  const { subjects, keys, sessions } = tables;
  const find = finder(engine);

  async function list({ kind, after = 0, limit, ...filter }: SubjectFilter): Promise<TeamOrUser[]> {
    const { id, keyId, teamId, text } = filter;
    const wanted = [
      eq(subjects.kind, kind),
      id === undefined ? undefined : eq(subjects.id, id),
      keyId === undefined ? undefined : eq(subjects.keyId, keyId),
      teamId === undefined ? undefined : eq(subjects.teamId, teamId),
      text === undefined ? undefined : or(contains(subjects.name, text), contains(subjects.external, text)),
      gt(subjects.id, after),
    ];
    const all = db.select().from(subjects).orderBy(asc(subjects.id)).$dynamic();
    const rows = await all.where(and(...wanted)).limit(limit ?? Number.MAX_SAFE_INTEGER);
    const members =
      kind === "user" ? [] : await db.select({ id: keys.teamId, keys: count() }).from(keys).groupBy(keys.teamId);
    const counts = new Map(members.map((one) => [one.id, one.keys]));
    return rows.map(({ refreshToken, ...row }) =>
      Object.assign(row, {
        isAskedAbout: refreshToken !== null,
        limits: limitsOf(row.rules),
        tags: JSON.parse(row.tags ?? "[]") as string[],
        keyCount: counts.get(row.id) ?? 0,
      }),
    );
  }

  /** A team's name is its own; a user is who it is at its source. */
  async function isTaken(kind: Kind, name: string | undefined, id: number): Promise<boolean> {
    if (kind === "user" || name === undefined) return false;
    return (await find(eq(subjects.kind, kind), eq(subjects.name, name), ne(subjects.id, id))) !== undefined;
  }

  const readOf = (kind: Kind, id: number) => async () => stateOf((await list({ kind, id }))[0]);

  return {
    list,
    create: (kind, subject, by) =>
      record(by, stateOf, async () => {
        await lock("subjects");
        if (await isTaken(kind, subject.name, 0)) return "collision";
        if (!(await isThere(engine, "team", subject.teamId))) return "no team";
        if (!(await isThere(engine, "key", subject.keyId))) return "no key";
        const row = { kind, isKept: true, ...columnsOf(subject, null) };
        const [created] = await db.insert(subjects).values(row).onConflictDoNothing().returning({ id: subjects.id });
        return created === undefined ? "collision" : ((await list({ kind, id: created.id }))[0] ?? "collision");
      }),
    update: (kind, id, change, by) =>
      record(by, readOf(kind, id), async () => {
        await lock("subjects");
        const before = await find(eq(subjects.kind, kind), eq(subjects.id, id));
        if (before === undefined) return undefined;
        if (await isTaken(kind, change.name, id)) return "collision";
        if (!(await isThere(engine, "team", change.teamId))) return "no team";
        const problem = await problemOfLink(engine, before, change.sameAs);
        if (problem !== undefined) return problem;
        // Whom the provider has let in before, it does not let in again, nor who had left before; and who is let in is not
        // asked about at once.
        const isSwitched = change.isActive === false || (change.isActive === true && !before.isActive);
        const confirmed = isSwitched && { refreshToken: null, refreshCheckedAt: clock() };
        const byHand = change.teamId !== undefined && { teamByProvider: false };
        const changed = { ...byHand, ...columnsOf(change, before.rules), ...confirmed, isKept: true };
        await db.update(subjects).set(changed).where(eq(subjects.id, id));
        if (change.isActive === false) await db.delete(sessions).where(eq(sessions.userId, id));
        return (await list({ kind, id }))[0];
      }),
    delete: (kind, id, forgets, by) =>
      record(by, forgets ? undefined : readOf(kind, id), async () => {
        await lock("subjects");
        const deleted = await find(eq(subjects.kind, kind), eq(subjects.id, id));
        if (deleted === undefined) return undefined;
        for (const table of [keys, subjects]) await db.update(table).set({ teamId: null }).where(eq(table.teamId, id));
        const lastName = forgets ? `${kind} ${id}` : deleted.name;
        await db.delete(sessions).where(eq(sessions.userId, id));
        await db.update(keys).set({ isActive: false, userId: null }).where(eq(keys.userId, id));
        await drop(engine, deleted, lastName);
        const { audit } = tables;
        const ofIt = eq(audit.target, `${kind}/${id}`);
        if (forgets) await db.update(audit).set({ before: null, after: null }).where(ofIt);
        return lastName;
      }),
    countUsers: () => countUsers(engine),
  };
}

async function countUsers({ rows, tables: { subjects, keys } }: Engine): ReturnType<SubjectStore["countUsers"]> {
  const counted = sql`select key_id, count(*) as users from ${subjects} where key_id is not null group by key_id`;
  const found = await rows<{ key: string; rules: string | null; users: number }>(
    sql`select name as key, rules, users from (${counted}) as counted join ${keys} on ${keys.id} = key_id`,
    ["key", "rules"],
  );
  return found.map(({ key, rules, users }) => {
    return { key, users, max: parseRules(rules ?? "{}").users_max ?? defaultUsersMax };
  });
}

export const finder =
  ({ db, tables: { subjects } }: Engine) =>
  async (...wanted: SQL[]): Promise<SubjectRow | undefined> => {
    const found = db.select().from(subjects);
    return (await found.where(and(...wanted)).limit(1))[0];
  };

export async function drop(
  { db, tables }: Engine,
  row: Pick<SubjectRow, "id" | "name">,
  lastName = row.name,
): Promise<void> {
  const { subjects, deletedKeys } = tables;
  await db.delete(subjects).where(eq(subjects.id, row.id));
  await db.update(subjects).set({ sameAs: null }).where(eq(subjects.sameAs, row.id));
  await db.insert(deletedKeys).values({ id: subjectOf(row.id), name: lastName });
}

/** In any case. @param text whose `%` and `_` stand for themselves */
const contains = (column: SQLWrapper, text: string): SQL =>
  sql`lower(${column}) like ${`%${text.toLowerCase().replaceAll(/[%_~]/g, "~$&")}%`} escape '~'`;

/** What the record of changes shows. */
async function stateOf(subject: unknown): Promise<Record<string, unknown>> {
  if (typeof subject !== "object" || subject === null) return {};
  const { name, note, tags, external, source, teamId, sameAs, isActive, limits } = subject as TeamOrUser;
  return { name, note, tags, source, external, team_id: teamId, same_as: sameAs, is_active: isActive, ...limits };
}

export const limitsOf = (rules: string | null): KeyLimits => {
  const all = parseRules(rules ?? "{}");
  const { limits_extra = null, priority = null, notify = null } = all;
  return { ...perLimit((name) => all[name]), limits_extra, priority, notify };
};

/** @param before the JSON of the limits so far */
function columnsOf<Change extends SubjectChange>({ limits, tags, ...fields }: Change, before: string | null) {
  const all = { ...limitsOf(before), ...limits };
  return {
    ...fields,
    ...(tags !== undefined && { tags: tags.length === 0 ? null : JSON.stringify(tags) }),
    rules: hasLimit(all) || all.priority !== null || all.notify === true ? JSON.stringify(all) : null,
  };
}

/** The names of some keys, teams and users, the last ones of those that are deleted. */
export async function findNames({ db, tables }: Engine, ids: readonly SubjectId[]): Promise<[SubjectId, string][]> {
  if (ids.length === 0) return [];
  const { keys, deletedKeys, subjects } = tables;
  const subjectId = sql<number>`-${subjects.id}`.mapWith(Number);
  const [ofKeys, ofSubjects] = [
    { id: keys.id, name: keys.name },
    { id: subjectId, name: subjects.name },
  ];
  const all = [...ids];
  const isOneOf = inArray(subjects.id, all.map(subjectOf));
  const found = await Promise.all([
    db.select().from(deletedKeys).where(inArray(deletedKeys.id, all)),
    db.select(ofKeys).from(keys).where(inArray(keys.id, all)),
    db.select(ofSubjects).from(subjects).where(isOneOf),
  ]);
  return found.flat().map(({ id, name }) => [id, name]);
}
