import { jest } from "bun:test";
import { createLedger, type LedgerOptions } from "../../src/ledger/ledger.ts";
import type { RefusedUsage } from "../../src/store/usage/batch.ts";
import type { FlushId } from "../../src/store/usage/contract.ts";
import { memoryLog } from "../store/test-store.ts";
import type { Usage, ResponseUsage, UsageIncrement } from "../../src/domain/usage.ts";
import type { UsageEvent } from "../../src/domain/usage-event.ts";
import { StorageError } from "../../src/store/storage-error.ts";

interface Flush {
  increments: readonly UsageIncrement[];
  responses: readonly ResponseUsage[];
  id: FlushId | undefined;
  /** @param added the tokens that were added for each of the responses */
  commit: (added?: Usage[], refused?: RefusedUsage[]) => void;
  fail: (message: string) => void;
}

export const waitLimitMs = 1000;
const maxRetryMs = 5;

/** Runs everything that does not wait for a timer. */
export async function runTicks(): Promise<void> {
  for (let n = 0; n < 3; n++) await new Promise(setImmediate);
}

export async function pass(ms: number): Promise<void> {
  await runTicks();
  jest.advanceTimersByTime(ms);
  await runTicks();
}

/** A ledger over a store whose commits the test decides. Its timers are the fake ones of the test. */
export function startLedger(options: Partial<LedgerOptions> = {}) {
  const flushes: Flush[] = [];
  const { entries, log } = memoryLog();
  const store: LedgerOptions["store"] = {
    add: (increments, id, responses = []) =>
      new Promise((resolve, reject) => {
        flushes.push({
          increments,
          responses,
          id,
          commit: (added = [], refused = []) => resolve({ added, refused }),
          fail: (message) => reject(new StorageError(message)),
        });
      }),
  };
  const ledger = createLedger({
    store,
    clock: () => 500_000,
    log,
    waitLimitMs,
    firstRetryMs: 1,
    maxRetryMs,
    ...options,
  });
  /** The flush at this position, which starts at once or after a retry pause. */
  const flushAt = async (position: number): Promise<Flush> => {
    await runTicks();
    if (flushes[position] === undefined) await pass(maxRetryMs);
    const flush = flushes[position];
    if (flush === undefined) throw new Error(`There is no flush ${position}`);
    return flush;
  };
  return { ledger, flushes, entries, flushAt };
}

export const usageEvent = (keyId: number, closedAt = 120_000): UsageEvent => ({
  keyId,
  closedAt,
  inputTokens: 10,
  outputTokens: 2,
});

export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => (settled = true));
  await runTicks();
  return settled;
}
