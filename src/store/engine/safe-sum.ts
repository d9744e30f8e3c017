import { type SQL, type SQLWrapper, sql } from "drizzle-orm";

/**
 * SQLite's sum of integers fails beyond 64 bits. This one is exact up to 2^53, as JavaScript's numbers are; PostgreSQL adds
 * up floats several times as fast as its exact numbers.
 */
export const safeSum = (column: SQLWrapper): SQL => sql`sum(cast(${column} as double precision))`;
