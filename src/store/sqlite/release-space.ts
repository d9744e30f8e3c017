import type { Database } from "bun:sqlite";

/** A portion takes half a millisecond, and after each sixth a checkpoint one or two more: flushes wait that long. */
const pagesPerPortion = 64;
/** Free pages that are kept for new rows: as many as this, or this share of the file. */
const keptPages = 1024;
const keptShare = 1 / 20;

/**
 * Truncates the file portion by portion. Does nothing to a database from before version 0.2, which cannot release single pages
 * (`auto_vacuum` is decided when a database is created).
 * @returns one portion; it returns how many pages it released
 */
export function createSpaceReleaser(client: Database): () => number {
  const countFree = (): number => numberOf(client, "freelist_count");
  return () => {
    const free = countFree();
    if (free <= Math.max(keptPages, numberOf(client, "page_count") * keptShare)) return 0;
    client.query(`PRAGMA incremental_vacuum(${pagesPerPortion})`).all();
    return free - countFree();
  };
}

const numberOf = (client: Database, pragma: string): number =>
  Object.values(client.query<Record<string, number>, []>(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0;
