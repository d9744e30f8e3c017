import { postgresColumns } from "../columns.ts";
import { defineTables } from "../schema.ts";

// drizzle-kit finds the tables by their exports.
export const {
  keys,
  deletedKeys,
  usageMinute,
  usageHour,
  usageDay,
  usageModelHour,
  usageModelDay,
  latencyMinute,
  latencyHour,
  outcomeMinute,
  outcomeHour,
  tokenlessHour,
  reconciliationDay,
  requestLog,
  usageFlushes,
  countedResponses,
  gpuSamples,
  gpuLatest,
  gpuPowerMinute,
  sessions,
  loginAttempts,
  settings,
} = defineTables(postgresColumns);
