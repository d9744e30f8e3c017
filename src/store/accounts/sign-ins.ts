import { and, asc, eq, inArray, isNull, lte, ne, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import type { Engine } from "../engine/engine.ts";
import type { RecordChange } from "./audit.ts";
import type { SignInStore } from "./contract.ts";

/** Instead of a token: the provider takes the last one no longer, so that only a new sign-in lets the user in. */
const refused = "";

export function createSignInStore(engine: Engine, clock: WallClock, record: RecordChange): SignInStore {
  const { db, transaction, lock } = engine;
  const { subjects, sessions, keys } = engine.tables;
  const isActive = eq(subjects.isActive, true);

  /** Switches a user off until the next sign-in. @param tried its token, unless that has changed since */
  const leave = (id: number, tried: string | null): Promise<boolean> => {
    const hasIt = tried === null ? isNull(subjects.refreshToken) : eq(subjects.refreshToken, tried);
    const one = and(eq(subjects.id, id), isActive, hasIt);
    const by = { actor: "OpenID Connect", role: "admin", address: null, requestId: null, changeId: null } as const;
    return record(
      { ...by, action: "user.update", id: String(id) },
      async () => {
        const [row] = await db.select({ is_active: subjects.isActive }).from(subjects).where(eq(subjects.id, id));
        return row ?? {};
      },
      async () => {
        await lock("subjects");
        const off = { isActive: false, refreshToken: refused };
        const left = await db.update(subjects).set(off).where(one).returning({ id: subjects.id });
        if (left.length > 0) await db.delete(sessions).where(eq(sessions.userId, id));
        return left.length > 0;
      },
    );
  };

  return {
    begin: ({ source, external, name, groups, newTeam, refreshToken }) =>
      transaction(async () => {
        await lock("subjects");
        const who = and(eq(subjects.source, source), eq(subjects.external, external));
        const [row] = await db.select().from(subjects).where(who);
        if (row?.isActive === false && row.refreshToken !== refused) return undefined;
        const now = clock();
        const seen = { isActive: true, lastSeenAt: now, signedInAt: now, refreshCheckedAt: now };
        // Some providers give a token at the first sign-in only.
        const token = refreshToken ?? (row?.refreshToken || null);
        const team = row?.teamByProvider === false ? undefined : { teamId: await teamOf(engine, groups, newTeam, now) };
        const change = { ...seen, ...team, name: row?.isKept === true ? row.name : name, refreshToken: token };
        const fresh = { kind: "user", source, external, createdAt: now, ...change } as const;
        const shown = { id: subjects.id, name: subjects.name };
        const [user] = await (row === undefined
          ? db.insert(subjects).values(fresh).returning(shown)
          : db.update(subjects).set(change).where(eq(subjects.id, row.id)).returning(shown));
        return user;
      }),
    claim: (before, now) =>
      transaction(async () => {
        await lock("subjects");
        const { id, refreshToken, refreshCheckedAt } = subjects;
        // Null is neither.
        const isDue = and(isActive, ne(refreshToken, refused), lte(refreshCheckedAt, before));
        const due = db.select({ id, refreshToken }).from(subjects).where(isDue);
        const [next] = await due.orderBy(asc(refreshCheckedAt)).limit(1);
        if (next === undefined) return undefined;
        await db.update(subjects).set({ refreshCheckedAt: now }).where(eq(id, next.id));
        return { id: next.id, refreshToken: next.refreshToken ?? "" };
      }),
    async keep(id, tried, kept) {
      const one = and(eq(subjects.id, id), eq(subjects.refreshToken, tried));
      await db.update(subjects).set(kept).where(one);
    },
    leave,
    async endUnseen(before) {
      const { id, refreshToken, refreshCheckedAt } = subjects;
      const owners = db.select({ id: sql<number>`${keys.userId}` }).from(keys);
      const unseen = and(isActive, isNull(refreshToken), lte(refreshCheckedAt, before), inArray(id, owners));
      const found = await db.select({ id }).from(subjects).where(unseen);
      const left: number[] = [];
      for (const one of found) if (await leave(one.id, null)) left.push(one.id);
      return left;
    },
  };
}

/** The team of the first name that is one's. @param newTeam is made if there is none */
async function teamOf(
  { db, tables: { subjects } }: Engine,
  names: readonly string[],
  newTeam: string | null,
  now: number,
): Promise<number | null> {
  const found = db.select({ id: subjects.id, name: subjects.name }).from(subjects);
  const teams = await found.where(and(eq(subjects.kind, "team"), inArray(subjects.name, [...names])));
  const [first] = names.flatMap((name) => teams.find((team) => team.name === name)?.id ?? []);
  if (first !== undefined || newTeam === null) return first ?? null;
  const row = { kind: "team", name: newTeam, isKept: true, createdAt: now } as const;
  return (await db.insert(subjects).values(row).returning({ id: subjects.id }))[0]?.id ?? null;
}
