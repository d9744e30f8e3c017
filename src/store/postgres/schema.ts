import { postgresColumns } from "../columns.ts";
import { defineTables } from "../schema.ts";

// One export a table: drizzle-kit finds them by that.
export const {
  keys,
  deletedKeys,
  usageMinute,
  usageHour,
  usageDay,
  usageFlushes,
  gpuSamples,
  gpuLatest,
  gpuPowerMinute,
  sessions,
  loginAttempts,
  settings,
} = defineTables(postgresColumns);
