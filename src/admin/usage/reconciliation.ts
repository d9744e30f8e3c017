import type { AdminDeps } from "../http/deps.ts";
import { dayFromNumber, dayNumberOf, timestampOf } from "../../time/seoul.ts";
import type { ReconciledDay } from "../../store/usage/contract.ts";
import * as schema from "../http/schemas.ts";
import { isDrifting } from "../../watching/state-rules.ts";
import type { ReconciliationBody } from "./cost-contract.ts";

export const getReconciliation =
  ({ store, clock }: AdminDeps) =>
  async ({ query: { days } }: { query: { days: number } }): Promise<ReconciliationBody> => {
    // First, because the rows must not be older.
    const reading = await store.reconciliation.lastReading();
    const since = dayNumberOf(clock()) - days + 1;
    const found = await store.reconciliation.days(since);
    const ofBackends = await store.reconciliation.backendDays(since, maxBackendDays);
    return {
      days,
      source: reading?.source ?? null,
      checked_at: reading === undefined ? null : timestampOf(reading.at),
      rows: found.map(dayBody),
      by_backend: ofBackends.map(dayBody),
    };
  };

const maxBackendDays = 1000;

const dayBody = <Row extends ReconciledDay>({ day, ...row }: Row) => ({
  date: dayFromNumber(day),
  ...schema.apiBody(row),
  difference: row.generatedTokens - row.countedOutputTokens,
  prompt_difference: row.promptTokens - row.countedInputTokens,
  is_drifting: isDrifting({ generated: row.generatedTokens, counted: row.countedOutputTokens }),
});
