import type { Engine, Statement } from "../engine/engine.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { AdmissionId, SettledAdmission } from "../../domain/admissions.ts";
import { chargedTokens, type UsageIncrement } from "../../domain/usage.ts";
import { groupRows } from "../engine/rows.ts";

export type KeySecondRow = [keyId: KeyId, second: number, requests: number, tokens: number];

/** Adds to what keys used in each second. */
export function prepareAddSeconds({ prepareInsert, tables }: Engine): (rows: KeySecondRow[]) => Statement {
  const columns = ["keyId", "second", "requests", "tokens"];
  const add = prepareInsert(tables.keySeconds, columns, { key: ["keyId", "second"], added: ["requests", "tokens"] });
  return (rows) => add(groupRows(rows, 2));
}

export function prepareGiveBack({ prepareDelete, tables }: Engine): (ended: readonly AdmissionId[]) => Statement {
  const remove = prepareDelete(tables.admissions, ["keyId", "instance", "number"]);
  // Sorted, so that concurrent writers lock the rows in one order.
  return (ended) =>
    remove(ended.map(({ keyId, instance, number }) => [keyId, instance, number] as const).toSorted(byKey));
}

const byKey = ([a]: readonly [number, ...unknown[]], [b]: readonly [number, ...unknown[]]): number => a - b;

/** What a flush does for the admissions that end with it: their reserved tokens become counted ones. */
export function prepareSettling(
  engine: Engine,
): (settled: readonly SettledAdmission[], increments: readonly UsageIncrement[]) => Statement[] {
  const giveBack = prepareGiveBack(engine);
  const addSeconds = prepareAddSeconds(engine);
  return (settled, increments) => {
    if (settled.length === 0) return [];
    const keys = new Set<KeyId>(settled.map(({ keyId }) => keyId));
    const rows = increments
      .filter(({ keyId }) => keys.has(keyId))
      // What an earlier estimate gives back was charged to a second that may be over.
      .map((one): KeySecondRow => [one.keyId, Math.floor(one.lastClosedAt / 1000), 0, Math.max(0, chargedTokens(one))]);
    const ended = settled.filter((one) => "number" in one);
    return [...(rows.length > 0 ? [addSeconds(rows)] : []), ...(ended.length > 0 ? [giveBack(ended)] : [])];
  };
}
