import { and, asc, count, eq, gt, isNull, or, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { dayNumberOf, timestampOf } from "../../time/seoul.ts";
import type { RecordChange } from "../accounts/audit.ts";
import type { Engine, MaybePromise } from "../engine/engine.ts";
import { jsonOfRules, noRules, parseRules } from "./rules.ts";
import { isThere } from "./subjects.ts";
import type { FoundKey, Key, KeyChange, KeyStore, NewKey } from "./contract.ts";
import {
  type KeyId,
  type KeyRules,
  maskKey,
  sourceOfKey,
  subjectOf,
  type TeamId,
  type UserId,
} from "../../domain/keys.ts";
import { hasLimit, tightestLimits } from "../../domain/limits.ts";

/** Both look-ups are prepared once, since the first runs for each request of the proxy. */
export function prepareFindActiveKey(engine: Engine, clock: WallClock): KeyStore["findActive"] {
  const { db, find, tables } = engine;
  const { keys, formerSecrets, subjects } = tables;
  const now = sql.placeholder("now");
  const isUsable = and(eq(keys.isActive, true), or(isNull(keys.expiresAt), gt(keys.expiresAt, now)));
  const found = {
    id: keys.id,
    rules: keys.rules,
    expiresAt: keys.expiresAt,
    userId: keys.userId,
    teamId: subjects.id,
    teamName: subjects.name,
    teamRules: subjects.rules,
  };
  const bySecret = db
    .select(found)
    .from(keys)
    .leftJoin(subjects, eq(subjects.id, keys.teamId))
    .where(and(eq(keys.key, sql.placeholder("key")), isUsable))
    .limit(1)
    .prepare();
  const byFormerSecret = db
    .select({ ...found, validUntil: formerSecrets.validUntil })
    .from(formerSecrets)
    .innerJoin(keys, eq(keys.id, formerSecrets.keyId))
    .leftJoin(subjects, eq(subjects.id, keys.teamId))
    .where(and(eq(formerSecrets.key, sql.placeholder("key")), gt(formerSecrets.validUntil, now), isUsable))
    .limit(1)
    .prepare();

  const limitsOf = createTeamLimits();

  function findFormer(key: string): MaybePromise<FoundKey | undefined> {
    const row = find(byFormerSecret, { key, now: clock() });
    return row instanceof Promise ? row.then((one) => foundKey(one, limitsOf)) : foundKey(row, limitsOf);
  }

  return (key) => {
    const row = find(bySecret, { key, now: clock() });
    if (row instanceof Promise) return row.then((one) => foundKey(one, limitsOf) ?? findFormer(key));
    return foundKey(row, limitsOf) ?? findFormer(key);
  };
}

interface FoundRow extends Pick<FoundKey, "id" | "expiresAt"> {
  /** Of the former secret that found it. */
  validUntil?: number;
  rules: string | null;
  userId: UserId | null;
  /** Null, like the two others, if the key has no team. */
  teamId: TeamId | null;
  teamName: string | null;
  teamRules: string | null;
}

const maxTeams = 1000;

/** All keys of a team share one object, so that each request sees at a glance that its limits are those of the last. */
function createTeamLimits(): typeof parseRules {
  const known = new Map<string, KeyRules>();
  return (json) => {
    if (known.size >= maxTeams) known.clear();
    return known.getOrInsertComputed(json, parseRules);
  };
}

function foundKey(row: FoundRow | undefined, limitsOf: typeof parseRules): FoundKey | undefined {
  if (row === undefined) return undefined;
  const { id, userId, teamId, teamName, validUntil } = row;
  const expiresAt = validUntil === undefined ? row.expiresAt : Math.min(validUntil, row.expiresAt ?? validUntil);
  const own = row.rules === null ? null : parseRules(row.rules);
  const rules = own ?? noRules;
  const ofUser = userId !== null && { userId };
  if (teamId === null || teamName === null) return { id, rules: ofUser ? rules : own, expiresAt, ...ofUser };
  const limits = limitsOf(row.teamRules ?? "{}");
  const subjects = [
    { id, limits: rules },
    { id: subjectOf(teamId), limits, team: teamName },
  ];
  return {
    id,
    expiresAt,
    teamId,
    ...ofUser,
    rules: { ...rules, ...tightestLimits(subjects) },
    subjects: subjects.filter((one) => hasLimit(one.limits)),
  };
}

export function createKeyStore(engine: Engine, clock: WallClock, record: RecordChange): KeyStore {
  const { db, lock } = engine;
  const { keys, keyLabels, deletedKeys, formerSecrets, subjects } = engine.tables;

  /** Whether a secret that is no longer the one of its key is still accepted. */
  async function isFormer(key: string): Promise<boolean> {
    const valid = and(eq(formerSecrets.key, key), gt(formerSecrets.validUntil, clock()));
    return (await db.select({ keyId: formerSecrets.keyId }).from(formerSecrets).where(valid)).length > 0;
  }

  async function findRow(id: number): Promise<KeyRow | undefined> {
    return (await db.select().from(keys).where(eq(keys.id, id)).limit(1))[0];
  }

  /** Reports of the days before today go on to show the labels of then. @param after undefined: it is deleted */
  async function keepLabels({ id: keyId, owner, tags }: KeyRow, after: KeyRow | undefined): Promise<void> {
    if (after === undefined ? owner === null && tags === null : owner === after.owner && tags === after.tags) return;
    await db.insert(keyLabels).values({ keyId, fromDay: 0, owner, tags }).onConflictDoNothing();
    if (after === undefined) return;
    const set = { owner: after.owner, tags: after.tags };
    await db
      .insert(keyLabels)
      .values({ keyId, fromDay: dayNumberOf(clock()), ...set })
      .onConflictDoUpdate({ target: [keyLabels.keyId, keyLabels.fromDay], set });
  }

  const readOf = (id: number) => async () => {
    const row = await findRow(id);
    return stateOf(row && keyOf(row));
  };

  return {
    findActive: prepareFindActiveKey(engine, clock),
    ...prepareEndings(engine, clock),
    list: (page) => list(engine, page),
    create: ({ key, createdAt, own, ...fields }, by) =>
      record(by, stateOf, async () => {
        // The secret may be one that another instance replaces at this moment.
        await lock("key_secrets");
        if (await isFormer(key)) return "collision";
        if (!(await isThere(engine, "team", fields.teamId))) return "no team";
        if (own !== undefined && !(await hasRoom(engine, own))) return "too many";
        const { name } = fields;
        const userId = own?.userId ?? null;
        const [created] = await db
          .insert(keys)
          .values({ isActive: true, ...zeroes, ...columnsOf(fields), name, key, createdAt, userId })
          .onConflictDoNothing({ target: keys.key })
          .returning();
        return created === undefined ? "collision" : keyOf(created);
      }),
    update: (id, change, by) =>
      record(by, readOf(id), async () => {
        // The rules are read, changed and written: two changes of different rules must both hold.
        if (change.rules !== undefined) await lock("key_rules");
        const before = await findRow(id);
        if (before === undefined) return undefined;
        if (!(await isThere(engine, "team", change.teamId))) return "no team";
        const [updated] = await db.update(keys).set(columnsOf(change, before.rules)).where(eq(keys.id, id)).returning();
        if (updated !== undefined) await keepLabels(before, updated);
        return updated && keyOf(updated);
      }),
    rotate: (id, { key, now, validUntil, expiresAt }, by) =>
      record(by, readOf(id), async () => {
        await lock("key_secrets");
        const before = await findRow(id);
        if (before === undefined) return undefined;
        const taken = await db.select({ id: keys.id }).from(keys).where(eq(keys.key, key)).limit(1);
        if (taken.length > 0 || (await isFormer(key))) return "collision";
        const set = { key, ...(expiresAt !== undefined && { expiresAt }) };
        const [updated] = await db.update(keys).set(set).where(eq(keys.id, id)).returning();
        const former = { keyId: id, validUntil };
        // It may have been a former secret before, whose row is not deleted yet.
        if (validUntil > now)
          await db
            .insert(formerSecrets)
            .values({ key: before.key, ...former })
            .onConflictDoUpdate({ target: formerSecrets.key, set: former });
        return updated && keyOf(updated);
      }),
    delete: (id, by) =>
      record(by, readOf(id), async () => {
        const [deleted] = await db.delete(keys).where(eq(keys.id, id)).returning();
        if (deleted === undefined) return undefined;
        await keepLabels(deleted, undefined);
        await db.delete(formerSecrets).where(eq(formerSecrets.keyId, id));
        await db.insert(deletedKeys).values({ id, name: deleted.name });
        const ofKey = eq(subjects.source, sourceOfKey(id));
        const names = db.select({ id: sql<number>`-${subjects.id}`.as("id"), name: subjects.name });
        await db.insert(deletedKeys).select(names.from(subjects).where(ofKey));
        await db.delete(subjects).where(ofKey);
        return deleted.name;
      }),
    async countActive() {
      const isUsable = and(eq(keys.isActive, true), or(isNull(keys.expiresAt), gt(keys.expiresAt, clock())));
      const [row] = await db.select({ active: count() }).from(keys).where(isUsable);
      return row?.active ?? 0;
    },
  };
}

async function list({ db, tables: { keys } }: Engine, page: Parameters<KeyStore["list"]>[0]): Promise<Key[]> {
  const all = db.select().from(keys).orderBy(asc(keys.id)).$dynamic();
  if (page === undefined) return (await all).map(keyOf);
  const { after, limit, userId } = page;
  const ofUser = userId === undefined ? undefined : eq(keys.userId, userId);
  return (await all.where(and(gt(keys.id, after), ofUser)).limit(limit)).map(keyOf);
}

/** Whether a user may have another key. Nobody switches the user off until the transaction ends. */
async function hasRoom(engine: Engine, { userId, maxKeys }: NonNullable<NewKey["own"]>): Promise<boolean> {
  if (!(await isThere(engine, "user", userId, true))) return false;
  const { keys } = engine.tables;
  const [all] = await engine.db.select({ keys: count() }).from(keys).where(eq(keys.userId, userId));
  return (all?.keys ?? 0) < maxKeys;
}

/** What the record of changes shows. */
async function stateOf(key: Key | string | undefined): Promise<Record<string, unknown>> {
  if (typeof key !== "object") return {};
  const { name, isActive, expiresAt, owner, note, tags, teamId, userId, rules } = key;
  const { users_secrets: secrets, ...others } = rules;
  const shown = {
    key: maskKey(key.key),
    name,
    is_active: isActive,
    owner,
    note,
    tags,
    team_id: teamId,
    user_id: userId,
    ...others,
  };
  const secret = secrets === null ? null : maskKey(secrets[0] ?? "");
  return { ...shown, users_secret: secret, expires_at: expiresAt === null ? null : timestampOf(expiresAt) };
}

const zeroes = { requestCount: 0, inputTokens: 0, outputTokens: 0, estimatedTokens: 0 };

type KeyRow = Engine["tables"]["keys"]["$inferSelect"];

const keyOf = (row: KeyRow): Key => ({
  ...row,
  rules: row.rules === null ? noRules : parseRules(row.rules),
  tags: row.tags === null ? [] : (JSON.parse(row.tags) as string[]),
});

/** @param before the JSON of the rules so far */
function columnsOf({ rules, tags, ...fields }: KeyChange, before: string | null = null): Partial<KeyRow> {
  const former = before === null ? noRules : parseRules(before);
  const changed = { ...former, ...rules };
  // Both are accepted while the other side changes.
  const secrets = rules?.users_secrets ?? [];
  if (secrets.length > 0) changed.users_secrets = [...secrets, ...(former.users_secrets ?? []).slice(0, 1)];
  return {
    ...fields,
    ...(tags !== undefined && { tags: tags.length === 0 ? null : JSON.stringify(tags) }),
    ...(rules !== undefined && { rules: jsonOfRules(changed) }),
  };
}

/** The new `last_used_at` after a use at `usedAt`, epoch milliseconds. It moves at most once a minute. */
export const lastUsedAtAfter = (usedAt: ReturnType<typeof sql>, { keys }: Engine["tables"]): ReturnType<typeof sql> =>
  sql`case when ${keys.lastUsedAt} > ${usedAt} - 60000 then ${keys.lastUsedAt} else ${usedAt} end`;

export function prepareListEndings({ db, tables: { keyEndings, keys } }: Engine): KeyStore["listEndings"] {
  const { id, keyId, endedAt } = keyEndings;
  const query = db
    .select({ id, keyId, endedAt, isActive: keys.isActive, expiresAt: keys.expiresAt })
    .from(keyEndings)
    .leftJoin(keys, eq(keys.id, keyId))
    .prepare();
  return () => query.execute();
}

function prepareEndings(
  engine: Engine,
  clock: WallClock,
): Pick<KeyStore, "endRunning" | "keepRunning" | "listEndings"> {
  const { db, transaction, tables } = engine;
  const { keyEndings } = tables;
  const deleteFuture = async (keyId: KeyId): Promise<void> => {
    await db.delete(keyEndings).where(and(eq(keyEndings.keyId, keyId), gt(keyEndings.endedAt, clock())));
  };
  return {
    listEndings: prepareListEndings(engine),
    keepRunning: deleteFuture,
    endRunning: (keyId, at) =>
      transaction(async () => {
        await deleteFuture(keyId);
        await db.insert(keyEndings).values({ keyId, endedAt: at });
      }),
  };
}
