import type { Database } from "bun:sqlite";

/** A step takes about a millisecond: flushes wait no longer than that. */
const pagesPerStep = 128;
/** Free pages that are kept for new rows: as many as this, or this share of the file. */
const keptPages = 1024;
const keptShare = 1 / 20;

const stepPauseMs = 100;
const idlePauseMs = 10_000;

/**
 * Truncates the file step by step. Does nothing to a database from before version 0.2, which cannot release single pages
 * (`auto_vacuum` is decided when a database is created).
 * @returns one step; it returns whether another one has something to do
 */
export function createSpaceReleaser(client: Database): () => boolean {
  let canRelease: boolean | undefined;
  const spare = (): number =>
    numberOf(client, "freelist_count") - Math.max(keptPages, numberOf(client, "page_count") * keptShare);
  return () => {
    canRelease ??= isIncremental(client);
    if (!canRelease || spare() <= 0) return false;
    client.query(`PRAGMA incremental_vacuum(${pagesPerStep})`).all();
    return spare() > 0;
  };
}

/** Whether the database can release single pages. */
export const isIncremental = (client: Database): boolean => numberOf(client, "auto_vacuum") === 2;

const numberOf = (client: Database, pragma: string): number =>
  Object.values(client.query<Record<string, number>, []>(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0;

/** Releases space for as long as there is some, in steps between the calls to the storage thread. */
export function releaseSpaceWhenIdle({ releaseSpace }: { releaseSpace: () => boolean }, isBusy: () => boolean): void {
  const step = (): void => {
    const hasMore = isBusy() || tryStep(releaseSpace);
    setTimeout(step, hasMore ? stepPauseMs : idlePauseMs).unref();
  };
  setTimeout(step, idlePauseMs).unref();
}

/** A locked or full database has other troubles, which other calls report. */
function tryStep(releaseSpace: () => boolean): boolean {
  try {
    return releaseSpace();
  } catch {
    return false;
  }
}
