// Users as requests name them: who it is, their limits, and when they were seen last, to the minute. A user who is new is
// created, while the key has room; then one who was not seen for long makes room, and else all further ones are one.

import { and, asc, count, eq, lt, ne } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { msPerDay, msPerMinute } from "../../time/seoul.ts";
import { type FoundUser, type KeyId, type SeenUser, sourceOfKey, type UserId } from "../../domain/keys.ts";
import { hasLimit } from "../../domain/limits.ts";
import type { Engine } from "../engine/engine.ts";
import type { SubjectStore } from "./contract.ts";
import { noLimits } from "./rules.ts";
import { drop, finder, limitsOf, type SubjectRow } from "./subjects.ts";

/** One that an operator has not touched makes room for others once it was not seen for so long. */
const forgottenAfterMs = 90 * msPerDay;
const fullForMs = 1000;

export function prepareSee(engine: Engine, clock: WallClock): SubjectStore["see"] {
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
