import { desc, gte, sql } from "drizzle-orm";
import { dayNumberOf, minuteOf } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import type { UsageStore, BackendSample, ReconciliationStore } from "./contract.ts";
import type { SettingsStore } from "../accounts/contract.ts";

/** The setting that holds the last sample, as JSON. */
const sampleSetting = "backend_sample";
/** Other processes take samples too. */
const minAgeMs = 30_000;
/** After a longer pause nothing is known of what was counted meanwhile. */
const maxAgeMs = 10 * 60_000;

export function createReconciliationStore(
  { db, transaction, lock, tables: { reconciliationDay: table } }: Engine,
  settings: SettingsStore,
  usage: Pick<UsageStore, "sumOfMinutes">,
): ReconciliationStore {
  async function lastSample(): Promise<BackendSample | undefined> {
    const text = await settings.find(sampleSetting);
    return text === undefined ? undefined : (JSON.parse(text) as BackendSample);
  }

  async function addSince(last: BackendSample, sample: BackendSample): Promise<void> {
    const counted = await usage.sumOfMinutes(minuteOf(last.at), minuteOf(sample.at));
    const row = {
      day: dayNumberOf(sample.at),
      generatedTokens: sample.generatedTokens - last.generatedTokens,
      promptTokens: sample.promptTokens - last.promptTokens,
      countedOutputTokens: counted.outputTokens,
      countedInputTokens: counted.inputTokens,
    };
    await db
      .insert(table)
      .values(row)
      .onConflictDoUpdate({
        target: table.day,
        set: {
          generatedTokens: sql`${table.generatedTokens} + excluded.generated_tokens`,
          promptTokens: sql`${table.promptTokens} + excluded.prompt_tokens`,
          countedOutputTokens: sql`${table.countedOutputTokens} + excluded.counted_output_tokens`,
          countedInputTokens: sql`${table.countedInputTokens} + excluded.counted_input_tokens`,
        },
      });
  }

  return {
    add: (sample) =>
      transaction(async () => {
        await lock("reconciliation");
        const last = await lastSample();
        const ageMs = last === undefined ? Infinity : sample.at - last.at;
        if (ageMs >= 0 && ageMs < minAgeMs) return;
        const isComparable = last !== undefined && ageMs >= 0 && ageMs <= maxAgeMs && !mayHaveRestarted(last, sample);
        if (isComparable) await addSince(last, sample);
        await settings.set(sampleSetting, JSON.stringify(sample));
      }),
    days: async (sinceDay) => await db.select().from(table).where(gte(table.day, sinceDay)).orderBy(desc(table.day)),
    lastSample,
  };
}

/**
 * Then nobody knows what the backend generated between the last sample and its restart. Of several behind one address, or
 * of two instances on one database, each backend has counters of its own.
 */
const mayHaveRestarted = (last: BackendSample, now: BackendSample): boolean =>
  now.afterMiss === true ||
  now.source !== last.source ||
  now.startedAt !== last.startedAt ||
  now.generatedTokens < last.generatedTokens ||
  now.promptTokens < last.promptTokens;
