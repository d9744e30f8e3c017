import { type SQL, type SQLWrapper, sql } from "drizzle-orm";

/** SQLite fails a sum of integers beyond 64 bits. This one is exact up to the largest integer that is exact here too, 2^53. */
export const safeSum = (column: SQLWrapper): SQL => sql`sum(${column} * 1.0)`;
