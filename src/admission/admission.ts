import { randomBytes } from "node:crypto";
import type { Admission, AdmissionId, KeyId, KeyLimits, LimitName } from "../domain.ts";
import type { Log } from "../log/log.ts";
import { createInstanceWatch } from "./instance-watch.ts";
import { holdsPlace, usedOf } from "../store/limit-windows.ts";
import type { AdmissionRequest, AdmissionResult, LimitStore } from "../store/limit-store.ts";
import type { MonotonicClock } from "../time/clock.ts";
import { within } from "../time/wait.ts";

/** Admits the requests of keys with limits. */
export interface Admissions {
  /** @param tokens reserved until the request ends */
  admit(keyId: KeyId, limits: KeyLimits, tokens: number): Promise<Admission>;
  /** Gives back what this process holds. */
  close(): Promise<void>;
}

export interface AdmissionsOptions {
  store: LimitStore;
  monotonic: MonotonicClock;
  log: Log;
  /** How long requests wait for the database; then they run without limits, as all requests do while it fails. */
  waitLimitMs?: number;
  beatMs?: number;
  /** After how long without a beat a process counts as dead. */
  deadAfterMs?: number;
}

interface PendingAdmission {
  request: AdmissionRequest;
  settled: PromiseWithResolvers<Admission>;
}

/** Pause before a failed batch is written again. */
const retryMs = 50;

/**
 * Natural group commit, as in the ledger: while one transaction runs, the requests for the next one gather. Of the requests
 * of one tick, all processes and instances together admit exactly what the limits allow.
 */
export function createAdmissions(options: AdmissionsOptions): Admissions {
  const { store, monotonic, log, waitLimitMs = 5000, beatMs = 3000, deadAfterMs = 15_000 } = options;
  const instance = randomBytes(9).toString("base64url");
  /** What this process has been given and not given back, by number. */
  const held = new Map<number, AdmissionId & { tokens: number }>();
  let lastNumber = 0;
  let waiting: PendingAdmission[] = [];
  let ended: AdmissionId[] = [];
  let loop: Promise<void> | undefined;
  /** The database fails: requests run without limits until a beat succeeds. */
  let degraded = false;
  let closed = false;
  /** Whether the database lists this process, or has failed to. */
  let isListed = false;
  const watch = createInstanceWatch({
    store,
    instance,
    monotonic,
    log,
    beatMs,
    deadAfterMs,
    listHeld: () => [...held.values()],
    onStoredAgain(stored) {
      // What ended since may have been given back before it was stored. What is not counted yet is released too early, but
      // so it was when the others took this process for dead.
      ended.push(...stored.filter(({ number }) => !held.has(number)));
    },
    onBeat() {
      if (degraded) log.info("Database available again; enforcing the limits of keys");
      degraded = false;
      startLoop();
    },
  });

  function giveBack(id: AdmissionId): void {
    if (!held.delete(id.number) || closed) return;
    ended.push(id);
    startLoop();
  }

  const hasWork = (): boolean => waiting.length + ended.length > 0 && !degraded;

  function startLoop(): void {
    if (hasWork() && !closed) loop ??= writeAll();
  }

  async function writeAll(): Promise<void> {
    // Requests of one tick share a transaction.
    await new Promise(setImmediate);
    while (hasWork()) {
      const [batch, given] = [waiting, ended];
      [waiting, ended] = [[], []];
      const results = await tryToWrite(batch, given);
      if (results === undefined) ended.push(...given);
      for (const [index, { request, settled }] of batch.entries()) {
        settled.resolve(admissionOf(request, results?.[index]));
      }
    }
    // The failed batch's requests run, and so do those that arrived meanwhile.
    if (degraded) for (const one of waiting.splice(0)) one.settled.resolve(unlimited);
    // Reset here, not when the promise resolves: a request that arrives in between must start the next loop.
    loop = undefined;
  }

  /** @returns undefined if the database does not take the batch in time */
  async function tryToWrite(
    batch: readonly PendingAdmission[],
    given: AdmissionId[],
  ): Promise<AdmissionResult[] | undefined> {
    const requests = batch.map(({ request }) => request);
    const deadline = monotonic() + waitLimitMs;
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        // Repeating a batch that was committed counts its requests twice, and holds no place twice.
        const work = store.admit({ instance, requests, ended: given, isRepeated });
        return await within(deadline - monotonic(), work, tooLate);
      } catch (error) {
        if (monotonic() + retryMs >= deadline) {
          enterDegraded(error);
          return undefined;
        }
        await Bun.sleep(retryMs);
      }
    }
  }

  function enterDegraded(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (!degraded) log.warn("Database unavailable; not enforcing the limits of keys", { reason });
    degraded = true;
    watch.hurry();
  }

  /** @param result undefined if it is not known whether the database admitted the request */
  function admissionOf({ keyId, limits, number, tokens }: AdmissionRequest, result: AdmissionResult | undefined) {
    const id: AdmissionId = { keyId, instance, number };
    const isHeld = holdsPlace(limits) && result?.refusedBy === undefined;
    if (isHeld) held.set(number, { ...id, tokens });
    return {
      refusedBy: result?.refusedBy,
      waitMs: result?.waitMs ?? 0,
      used: (name: LimitName) => (result === undefined ? undefined : usedOf(result.load, name)),
      handOver() {
        held.delete(number);
        return isHeld ? id : undefined;
      },
      end: () => giveBack(id),
    };
  }

  return {
    async admit(keyId, limits, tokens) {
      lastNumber += 1;
      const request: AdmissionRequest = { keyId, limits, tokens, number: lastNumber };
      if (degraded || closed) return unlimited;
      if (!isListed) {
        await within(waitLimitMs, watch.start(), tooLate).catch(enterDegraded);
        isListed = true;
      }
      if (degraded) return unlimited;
      const settled = Promise.withResolvers<Admission>();
      waiting.push({ request, settled });
      startLoop();
      return await settled.promise;
    },
    async close() {
      await loop;
      closed = true;
      // What it cannot give back, other processes release.
      await within(waitLimitMs, watch.close(), tooLate).catch(() => {});
    },
  };
}

const tooLate = (): Error => new Error("no response in time");

/** For a request that was admitted without the database. */
const unlimited: Admission = {
  refusedBy: undefined,
  waitMs: 0,
  used: () => undefined,
  handOver: () => undefined,
  end: () => {},
};
