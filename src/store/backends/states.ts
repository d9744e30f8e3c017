import { and, asc, desc, eq, gt, isNotNull, isNull, lte, max, not, or, type SQL, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { msPerDay } from "../../time/seoul.ts";
import type { RecordChange } from "../accounts/audit.ts";
import type { Engine } from "../engine/engine.ts";
import type { NoticeStore, StateStore } from "./contract.ts";

/** What a process does not say again within this time stands no longer: it was killed, or cannot reach the database. */
const leaseMs = 30_000;
const pastMs = 30 * msPerDay;
const maxListed = 500;

/** By the database's clock: those of two machines may differ. */
const timeOf = ({ currentSecond }: Engine, clock: WallClock): SQL =>
  currentSecond === undefined ? sql`${clock()}` : sql`${currentSecond} * 1000`;

const isHeld = (engine: Engine, clock: WallClock): SQL =>
  sql`${engine.tables.states.seenAt} > ${timeOf(engine, clock)} - ${sql.raw(String(leaseMs))}`;

export function createStateStore(engine: Engine, clock: WallClock, record: RecordChange): StateStore {
  const { db, tables } = engine;
  const { states } = tables;
  const { process, kind, object, since } = states;

  return {
    async save(rows) {
      const [what, count, until] = [sql`excluded.what`, sql`excluded.count`, sql`excluded.until`];
      const seenAt = sql`excluded.seen_at`;
      await db
        .insert(states)
        .values(rows.map((row) => Object.assign({}, row, { seenAt: timeOf(engine, clock) })))
        .onConflictDoUpdate({ target: [process, kind, object, since], set: { what, count, until, seenAt } });
    },
    async list() {
      const isRecent = or(isNull(states.until), gt(states.until, clock() - pastMs));
      const rows = await db
        .select({ state: states, isHeld: sql`case when ${isHeld(engine, clock)} then 1 else 0 end`.mapWith(Number) })
        .from(states)
        .where(isRecent)
        .orderBy(sql`${states.until} is not null`, desc(since))
        .limit(maxListed);
      return rows.map(({ state: { seenAt, ...state }, isHeld: held }) =>
        Object.assign(state, { until: state.until ?? (held === 1 ? null : seenAt) }),
      );
    },
    async silence(silenced, { until, why }, by) {
      const columns = { until: states.silencedUntil, why: states.silencedWhy, by: states.silencedBy };
      for (const one of silenced) {
        const which = and(eq(process, one.process), eq(kind, one.kind), eq(object, one.object), eq(since, one.since));
        await record(
          by,
          async () => (await db.select(columns).from(states).where(which))[0] ?? {},
          async () => {
            const set = { silencedUntil: until, silencedWhy: why, silencedBy: by.actor };
            await db.update(states).set(set).where(which);
          },
        );
      }
    },
  };
}

export function createNoticeStore(engine: Engine, clock: WallClock): NoticeStore {
  const { db, tables, transaction } = engine;
  const { notices, states } = tables;
  const kindIs = (kind: string): SQL => eq(states.kind, kind);
  return {
    latest: async () =>
      await db
        .select({ kind: notices.kind, at: max(notices.createdAt).mapWith(Number) })
        .from(notices)
        .groupBy(notices.kind),
    add: (notice, began) =>
      transaction(async () => {
        const at = clock();
        const row = { ...notice, createdAt: at, tries: 0, nextAt: at };
        const made = await db.insert(notices).values(row).onConflictDoNothing().returning({ id: notices.id });
        if (made.length === 0) return;
        const isLoud = or(isNull(states.silencedUntil), lte(states.silencedUntil, at));
        const stands = and(isNull(states.until), isHeld(engine, clock));
        const isGone = or(isNotNull(states.until), not(isHeld(engine, clock)));
        const came = and(kindIs(notice.kind), eq(states.told, 0), stands, lte(states.since, began), isLoud);
        await db
          .update(states)
          .set({ told: 2 })
          .where(and(kindIs(notice.kind), eq(states.told, 1), isGone));
        await db.update(states).set({ told: 1 }).where(came);
      }),
    async take(firstRetryMs) {
      const { id, kind, body, tries, nextAt } = notices;
      const now = clock();
      const [due] = await db.select().from(notices).where(lte(nextAt, now)).orderBy(asc(nextAt)).limit(1);
      if (due === undefined) return undefined;
      // Whoever else has seen it due finds that it no longer is.
      const [taken] = await db
        .update(notices)
        .set({ tries: due.tries + 1, nextAt: now + firstRetryMs * 2 ** due.tries })
        .where(and(eq(id, due.id), eq(tries, due.tries)))
        .returning({ id, kind, body, tries });
      return taken;
    },
    async finish(id) {
      await db.update(notices).set({ nextAt: null }).where(eq(notices.id, id));
    },
  };
}
