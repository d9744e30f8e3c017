import type { Log } from "../log/log.ts";

export interface RequestLogPruningDeps {
  /** Deletes some of the rows that are not kept. @returns whether there may be more */
  prune: () => Promise<boolean>;
  log: Log;
}

const intervalMs = 60_000;
/** At the start, since the retention may be shorter than before, and while there is more to delete. */
const soonMs = 1000;

/** Prunes the request log also while no request is written to it, which prunes it as well. @returns stops it */
export function startRequestLogPruning({ prune, log }: RequestLogPruningDeps): () => void {
  let stopped = false;
  let timer = setTimeout(() => void run(), soonMs);

  async function tryToPrune(): Promise<boolean> {
    try {
      return await prune();
    } catch (error) {
      log.debug("Request log not pruned", { error: String(error) });
      return false;
    }
  }

  async function run(): Promise<void> {
    const hasMore = await tryToPrune();
    if (!stopped) timer = setTimeout(() => void run(), hasMore ? soonMs : intervalMs);
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
