import { and, asc, count, desc, eq, getTableColumns, gt, inArray, lt, min, ne, type SQL, sql } from "drizzle-orm";
import type { Change } from "../../domain/changes.ts";
import type { UserId } from "../../domain/keys.ts";
import type { Engine } from "../engine/engine.ts";
import type { RecordChange } from "./audit.ts";
import type { SessionStore } from "./contract.ts";

const windowMs = 60_000;
const maxListed = 500;

/** Prepared once, since it runs for each request of the console. */
export function prepareFindSession({ db, find, tables: { sessions, subjects } }: Engine): SessionStore["find"] {
  const { idHash, csrfToken, username, expiresAt, userId, role, providerSid } = sessions;
  // A sign-in that was under way while its user was switched off or deleted starts one that is none.
  const isAllowed = sql`(${userId} is null or ${subjects.isActive})`;
  const query = db
    .select({ csrfToken, username, expiresAt, userId, role, providerSid })
    .from(sessions)
    .leftJoin(subjects, eq(subjects.id, userId))
    .where(and(eq(idHash, sql.placeholder("idHash")), gt(expiresAt, sql.placeholder("now")), isAllowed))
    .limit(1)
    .prepare();
  return (hash, now) => find(query, { idHash: hash, now });
}

export function createSessionStore(engine: Engine, record: RecordChange): SessionStore {
  const { db, transaction, lock } = engine;
  const { sessions, subjects, loginAttempts } = engine.tables;

  /** Deletes sessions. @returns how many there were */
  const end = (which: SQL, by: Change | undefined): Promise<number> =>
    record(
      by,
      async () => {
        const rows = await db.select().from(sessions).where(which).orderBy(asc(sessions.idHash)).limit(maxListed);
        return Object.fromEntries(rows.map(({ idHash, address, client }) => [idHash.slice(0, 16), [address, client]]));
      },
      async () => (await db.delete(sessions).where(which).returning({ id: sessions.idHash })).length,
    );

  const ofUser = (id: UserId | undefined) => (id === undefined ? undefined : eq(sessions.userId, id));

  return {
    find: prepareFindSession(engine),
    async create(idHash, session, origin) {
      await db.insert(sessions).values({ idHash, ...session, ...origin });
    },
    async extend(idHash, expiresAt) {
      await db.update(sessions).set({ expiresAt }).where(eq(sessions.idHash, idHash));
    },
    async delete(idHash, by) {
      await end(eq(sessions.idHash, idHash), by);
    },
    async list(now, of) {
      const { csrfToken: _csrfToken, providerSid: _providerSid, ...columns } = getTableColumns(sessions);
      return await db
        .select(columns)
        .from(sessions)
        .where(and(gt(sessions.expiresAt, now), ofUser(of)))
        .orderBy(desc(sessions.expiresAt), asc(sessions.idHash))
        .limit(maxListed);
    },
    deleteOthers: (idHash, by, of) => end(sql`${and(ne(sessions.idHash, idHash), ofUser(of))}`, by),
    deleteOfProvider(source, { external, sid }) {
      const users = db.select({ id: subjects.id }).from(subjects);
      const who = and(
        eq(subjects.source, source),
        external === undefined ? undefined : eq(subjects.external, external),
      );
      const one = sid === undefined ? undefined : eq(sessions.providerSid, sid);
      return end(sql`${and(inArray(sessions.userId, users.where(who)), one)}`, undefined);
    },
    // A refused attempt does not count, so a client that waits for the returned time may proceed.
    countLoginAttempt: (limits, now) =>
      transaction(async () => {
        await lock("login_attempts");
        const { attemptedAt } = loginAttempts;
        // Not those in the future: a clock that was set back must not lock an address out.
        const isRecent = and(gt(attemptedAt, now - windowMs), lt(attemptedAt, now + windowMs));
        for (const { scope, attempts } of limits) {
          const [recent] = await db
            .select({ attempts: count(), first: min(loginAttempts.attemptedAt) })
            .from(loginAttempts)
            .where(and(eq(loginAttempts.address, scope), isRecent));
          if (recent !== undefined && recent.first !== null && recent.attempts >= attempts) {
            return { scope, waitMs: recent.first + windowMs - now };
          }
        }
        await db.insert(loginAttempts).values(limits.map(({ scope }) => ({ address: scope, attemptedAt: now })));
        return undefined;
      }),
  };
}
