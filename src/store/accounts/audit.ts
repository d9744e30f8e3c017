import { and, desc, eq, gte, lt, sql } from "drizzle-orm";
import type { Change } from "../../domain/changes.ts";
import type { WallClock } from "../../time/clock.ts";
import { msPerMinute } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { auditFilters, type AuditStore } from "./contract.ts";

const maxStateBytes = 4096;
const msPerHour = 60 * msPerMinute;
/** Of other addresses, an hour's refused logins are counted together. */
const addressesAnHour = 1000;

/** What may be shown of a target: no secret, and nothing that changes by itself. */
type State = Readonly<Record<string, unknown>>;

/**
 * Does `work` and, if it is somebody's change, adds its row, in one transaction. What left its target as it was has no
 * row; without `read`, all of it has.
 * @param read what may be shown of the target, before the work and with its result
 */
export type RecordChange = <T>(
  by: Change | undefined,
  read: ((result?: T) => Promise<State>) | undefined,
  work: () => Promise<T>,
) => Promise<T>;

export function createRecordChange(
  { db, transaction, lock, tables: { audit } }: Engine,
  clock: WallClock,
): RecordChange {
  return (by, read, work) =>
    transaction(async () => {
      if (by === undefined) return work();
      const { id, ...row } = by;
      const [noun = ""] = by.action.split(".");
      // What it was before is what the next change of it sees as after.
      await lock(`change of ${noun}`);
      const before = await read?.();
      const result = await work();
      const after = await read?.(result);
      if (read !== undefined && Bun.deepEquals(before, after)) return result;
      // What was created has one.
      const { id: targetId = id } = Object(result) as { id?: number | string };
      const target = targetId === undefined ? noun : `${noun}/${targetId}`;
      const states = { before: differenceOf(before, after), after: differenceOf(after, before) };
      await db.insert(audit).values({ ...row, ...states, target, at: clock(), count: 1 });
      return result;
    });
}

/** The members in which one differs from the other, as JSON. */
function differenceOf(one: State = {}, other: State = {}): string | null {
  const members = Object.entries(one).filter(([name, value]) => value !== null && !Bun.deepEquals(value, other[name]));
  if (members.length === 0) return null;
  // A character that is cut in two becomes one of three bytes.
  return Buffer.from(JSON.stringify(Object.fromEntries(members))).toString("utf8", 0, maxStateBytes - 2);
}

export function createAuditStore(engine: Engine, clock: WallClock, record: RecordChange): AuditStore {
  const { db, transaction, lock, tables } = engine;
  const { audit } = tables;
  return {
    add: (by) => record(by, undefined, async () => {}),
    addRefusedLogins: (from, count) =>
      transaction(async () => {
        await lock("refused logins");
        const [at, action] = [clock(), "login.refused"];
        const ofHour = and(gte(audit.at, at - (at % msPerHour)), eq(audit.action, action));
        const rows = await db.select({ id: audit.id, address: audit.address }).from(audit).where(ofHour);
        const rowOf = (address: string) => rows.find((row) => row.address === address);
        const address = rows.length < addressesAnHour || rowOf(from) !== undefined ? from : "others";
        const found = rowOf(address);
        if (found === undefined)
          await db.insert(audit).values({ at, actor: "unknown", address, action, target: "login", count });
        else
          await db
            .update(audit)
            .set({ count: sql`${audit.count} + ${count}` })
            .where(eq(audit.id, found.id));
      }),
    list: async ({ before, limit, ...filter }) => {
      const asked = auditFilters.flatMap((name) => (filter[name] === undefined ? [] : [eq(audit[name], filter[name])]));
      const rows = db
        .select()
        .from(audit)
        .where(and(lt(audit.id, before), ...asked));
      return await rows.orderBy(desc(audit.id)).limit(limit);
    },
  };
}
