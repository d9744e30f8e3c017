import { postgresColumns } from "../columns.ts";
import { defineTables } from "../schema.ts";

// drizzle-kit finds the tables by their exports.
export const {
  keys,
  formerSecrets,
  deletedKeys,
  usageMinute,
  usageHour,
  usageDay,
  usageFlushes,
  countedResponses,
  instances,
  admissions,
  keySeconds,
  keyRefusals,
  keyEndings,
  gpuSamples,
  gpuLatest,
  gpuPowerMinute,
  sessions,
  loginAttempts,
  settings,
} = defineTables(postgresColumns);
