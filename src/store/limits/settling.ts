import { sql } from "drizzle-orm";
import type { Engine, Statement } from "../engine/engine.ts";
import { groupRows } from "../engine/rows.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { SettledAdmission } from "../../domain/admissions.ts";
import { chargedTokens, type UsageIncrement } from "../../domain/usage.ts";

type KeySecondRow = [keyId: KeyId, second: number, writer: string, requests: number, tokens: number];

const key = ["keyId", "second", "writer"];
const added = ["requests", "tokens"];

/** Adds to what keys used in each second. */
export function prepareAddSeconds({ prepareInsert, tables }: Engine): (rows: KeySecondRow[]) => Statement {
  const add = prepareInsert(tables.leaseSeconds, [...key, ...added], { key, added });
  return (rows) => add(groupRows(rows, key.length));
}

interface UsedTokens {
  keyId: KeyId;
  writer: string;
  tokens: number;
  /** By our clock, epoch milliseconds. */
  at: number;
}

/** Counts tokens in the second in which they were used. @param agoSeconds before now, by the database's clock if it has one */
export function prepareAddTokens(engine: Engine, agoSeconds = 0): (used: readonly UsedTokens[]) => Statement[] {
  const { currentSecond, prepareInsert, tables } = engine;
  const addSeconds = prepareAddSeconds(engine);
  const second = currentSecond && sql`${currentSecond} - ${sql.raw(String(agoSeconds))}`;
  const addNow =
    second && prepareInsert(tables.leaseSeconds, ["keyId", "writer", ...added], { key, added }, { second });
  return (used) => {
    const rows: KeySecondRow[] = [];
    for (const { keyId, writer, tokens, at } of used) {
      rows.push([keyId, addNow === undefined ? Math.floor(at / 1000) - agoSeconds : 0, writer, 0, tokens]);
    }
    if (rows.length === 0) return [];
    if (addNow === undefined) return [addSeconds(rows)];
    const sums = groupRows(rows, key.length);
    return [addNow(sums.map(([id = 0, , writer = "", requests = 0, tokens = 0]) => [id, writer, requests, tokens]))];
  };
}

/** What a flush does for keys with limits of tokens. It writes nothing that is held, and no row that an admission waits for. */
export function prepareSettling(
  engine: Engine,
): (settled: readonly SettledAdmission[], increments: readonly UsageIncrement[]) => Statement[] {
  const addTokens = prepareAddTokens(engine);
  return (settled, increments) => {
    if (settled.length === 0) return [];
    const writers = new Map<KeyId, string>();
    for (const { keyId, instance } of settled) writers.set(keyId, `${instance} counts`);
    const used: UsedTokens[] = [];
    for (const increment of increments) {
      const { keyId, lastClosedAt: at } = increment;
      const writer = writers.get(keyId);
      // What an earlier estimate gives back was charged to a second that may be over.
      if (writer !== undefined) used.push({ keyId, writer, tokens: Math.max(0, chargedTokens(increment)), at });
    }
    return addTokens(used);
  };
}
