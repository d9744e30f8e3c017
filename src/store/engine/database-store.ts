/** What the console shows of the database itself. */
export interface DatabaseStore {
  describe(): Promise<{ kind: "sqlite" | "postgresql"; version: string; sizeBytes: number }>;
  tables(): Promise<readonly string[]>;
  /** Counts up to a limit, so that a long table holds up nothing. */
  countRows(table: string): Promise<{ rows: number; isExact: boolean }>;
}
