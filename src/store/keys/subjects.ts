import { and, asc, count, eq, gt, inArray, lt, ne, or, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { RecordChange } from "../accounts/audit.ts";
import type { Engine } from "../engine/engine.ts";
import type { WallClock } from "../../time/clock.ts";
import { msPerDay, msPerMinute } from "../../time/seoul.ts";
import {
  defaultUsersMax,
  type FoundUser,
  type KeyId,
  type KeyLimits,
  type SeenUser,
  sourceOfKey,
  type SubjectId,
  subjectOf,
  type UserId,
} from "../../domain/keys.ts";
import { hasLimit, perLimit } from "../../domain/limits.ts";
import type { SubjectChange, SubjectFilter, SubjectProblem, SubjectStore, TeamOrUser } from "./contract.ts";
import { noLimits, parseRules } from "./rules.ts";

type Kind = TeamOrUser["kind"];
type SubjectRow = Engine["tables"]["subjects"]["$inferSelect"];

/** One that an operator has not touched makes room for others once it was not seen for so long. */
const forgottenAfterMs = 90 * msPerDay;
const fullForMs = 1000;

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

export function createSubjectStore(engine: Engine, clock: WallClock, record: RecordChange): SubjectStore {
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
        const isSwitched = change.isActive !== undefined && change.isActive !== before.isActive;
        // Whom the provider has let in before, it does not let in again; and who is let in is not asked about at once.
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
    see: prepareSee(engine, clock),
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

const finder =
  ({ db, tables: { subjects } }: Engine) =>
  async (...wanted: SQL[]): Promise<SubjectRow | undefined> => {
    const found = db.select().from(subjects);
    return (await found.where(and(...wanted)).limit(1))[0];
  };

async function drop({ db, tables }: Engine, row: Pick<SubjectRow, "id" | "name">, lastName = row.name): Promise<void> {
  const { subjects, deletedKeys } = tables;
  await db.delete(subjects).where(eq(subjects.id, row.id));
  await db.update(subjects).set({ sameAs: null }).where(eq(subjects.sameAs, row.id));
  await db.insert(deletedKeys).values({ id: subjectOf(row.id), name: lastName });
}

function prepareSee(engine: Engine, clock: WallClock): SubjectStore["see"] {
  const { db, lock } = engine;
  const { subjects } = engine.tables;
  const find = finder(engine);
  const findAt = (source: string, external: string) =>
    find(eq(subjects.source, source), eq(subjects.external, external));
  /** Of keys that had no room: for how many, and until when that is taken for granted. Else each made-up user took the lock. */
  const full = new Map<KeyId, { max: number; until: number }>();

  /** Whether the user is one of those that cannot be told apart. */
  function isOther({ keyId, external, max }: SeenUser): boolean {
    const known = full.get(keyId);
    return external === "" || (known?.max === max && clock() < known.until);
  }

  /** @returns whether the key may have another user */
  async function makeRoom({ keyId, max }: SeenUser): Promise<boolean> {
    const ofKey = and(eq(subjects.keyId, keyId), ne(subjects.external, ""));
    const [all] = await db.select({ users: count() }).from(subjects).where(ofKey);
    if ((all?.users ?? 0) < max) return true;
    const forgotten = and(ofKey, eq(subjects.isKept, false), lt(subjects.lastSeenAt, clock() - forgottenAfterMs));
    const [oldest] = await db.select().from(subjects).where(forgotten).orderBy(asc(subjects.lastSeenAt)).limit(1);
    if (oldest === undefined) full.set(keyId, { max, until: clock() + fullForMs });
    else await drop(engine, oldest);
    return oldest !== undefined;
  }

  async function createSeen(seen: SeenUser): Promise<SubjectRow> {
    await lock("subjects");
    const { keyId } = seen;
    const hasRoom = !isOther(seen) && (await makeRoom(seen));
    const external = hasRoom ? seen.external : "";
    const source = hasRoom ? seen.source : sourceOfKey(keyId);
    const name = hasRoom ? (seen.name ?? external) : "other";
    const now = clock();
    const row = { kind: "user", name, source, external, keyId, createdAt: now, lastSeenAt: now } as const;
    await db.insert(subjects).values(row).onConflictDoNothing();
    const created = await findAt(source, external);
    if (created === undefined) throw new Error("A user is gone");
    return created;
  }

  async function note(row: SubjectRow, { name = row.name }: Partial<Pick<SeenUser, "name">>): Promise<void> {
    const isRenamed = row.external !== "" && !row.isKept && name !== row.name;
    const now = clock();
    if (!isRenamed && (row.lastSeenAt ?? 0) > now - msPerMinute) return;
    const seen = { lastSeenAt: now, ...(isRenamed && { name }) };
    await db.update(subjects).set(seen).where(eq(subjects.id, row.id));
  }

  async function findOrCreate(seen: SeenUser): Promise<SubjectRow> {
    const row =
      (await findAt(seen.source, seen.external)) ??
      (isOther(seen) ? await findAt(sourceOfKey(seen.keyId), "") : undefined);
    if (row !== undefined) await note(row, seen);
    return row ?? (await engine.transaction(() => createSeen(seen)));
  }

  async function findKept(id: UserId): Promise<SubjectRow | undefined> {
    const row = await find(eq(subjects.kind, "user"), eq(subjects.id, id));
    if (row !== undefined) await note(row, {});
    return row;
  }

  return async (seen) => {
    const known = typeof seen === "number" ? await findKept(seen) : await findOrCreate(seen);
    if (known === undefined) return { id: Number(seen), isActive: false };
    const user = known.sameAs === null ? known : ((await find(eq(subjects.id, known.sameAs))) ?? known);
    const team = user.teamId === null ? undefined : await find(eq(subjects.id, user.teamId));
    const own = limitsOf(user.rules);
    return {
      id: user.id,
      // Either may be switched off.
      isActive: user.isActive && known.isActive,
      priority: own.priority,
      limits: hasLimit(own) ? own : user.external === "" ? noLimits : undefined,
      team: team && { id: team.id, name: team.name, limits: limitsOf(team.rules) },
    } satisfies FoundUser;
  };
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

const limitsOf = (rules: string | null): KeyLimits => {
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
