import { type SQL, type SQLWrapper, sql } from "drizzle-orm";

/** SQLite's sum of integers fails beyond 64 bits. This one is exact up to 2^53, as JavaScript's numbers are. */
export const safeSum = (column: SQLWrapper): SQL => sql`sum(${column} * 1.0)`;
