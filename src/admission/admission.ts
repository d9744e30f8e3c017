import { randomBytes } from "node:crypto";
import type { Admission, AdmissionId, KeyId, KeyLimits, LimitName } from "../domain.ts";
import type { Log } from "../log/log.ts";
import { createInstanceWatch } from "./instance-watch.ts";
import { createSpareAdmissions } from "./spare-admissions.ts";
import { holdsPlace, usedOf } from "../store/limit-windows.ts";
import type { AdmissionRequest, AdmissionResult, LimitStore, UnusedAdmission } from "../store/limit-store.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
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
  /** The store's. */
  clock: WallClock;
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
/** Spare admissions in one batch: of many keys that send much, each transaction has some. */
const maxSpares = 128;

/**
 * Natural group commit, as in the ledger: while one transaction runs, the requests for the next one gather. Of the requests
 * of one tick, all processes and instances together admit exactly what the limits allow.
 */
export function createAdmissions(options: AdmissionsOptions): Admissions {
  const { store, monotonic, clock, log, waitLimitMs = 5000, beatMs = 3000, deadAfterMs = 15_000 } = options;
  const instance = randomBytes(9).toString("base64url");
  /** What this process has been given and not given back, by number. */
  const held = new Map<number, AdmissionId & { tokens: number }>();
  let lastNumber = 0;
  let waiting: PendingAdmission[] = [];
  let ended: AdmissionId[] = [];
  let unused: UnusedAdmission[] = [];
  const spares = createSpareAdmissions();
  let secondEnd: Timer | undefined;
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

  const hasWork = (): boolean => waiting.length + ended.length + unused.length > 0 && !degraded;
  const currentSecond = (): number => Math.floor(clock() / 1000);

  function startLoop(): void {
    if (hasWork() && !closed) loop ??= writeAll();
  }

  async function writeAll(): Promise<void> {
    // Requests of one tick share a transaction.
    await new Promise(setImmediate);
    while (hasWork()) {
      const [batch, given] = [waiting, { ended, unused }];
      [waiting, ended, unused] = [[], [], []];
      const requests = batch.map(({ request }) => request);
      const ahead = sparesFor(requests);
      const results = await tryToWrite([...requests, ...ahead], given);
      if (results === undefined) ended.push(...given.ended, ...given.unused, ...ahead.map(idOf));
      else for (const [index, request] of ahead.entries()) keepSpare(request, results[requests.length + index]);
      for (const [index, { request, settled }] of batch.entries()) {
        settled.resolve(admissionOf(request, results?.[index]));
      }
    }
    // The failed batch's requests run, and so do those that arrived meanwhile.
    if (degraded) for (const one of waiting.splice(0)) one.settled.resolve(unlimited);
    // Reset here, not when the promise resolves: a request that arrives in between must start the next loop.
    loop = undefined;
  }

  /** What to ask for beside requests, for others like them. */
  function sparesFor(requests: readonly AdmissionRequest[]): AdmissionRequest[] {
    const second = currentSecond();
    const found: AdmissionRequest[] = [];
    for (const [keyId, own] of Map.groupBy(requests, (request) => request.keyId)) {
      const { limits } = own[0] as AdmissionRequest;
      const count = Math.min(spares.wanted(keyId, limits, second), maxSpares - found.length);
      const tokens = Math.max(...own.map((request) => request.tokens));
      for (let index = 0; index < count; index++) {
        lastNumber += 1;
        found.push({ keyId, limits, tokens, number: lastNumber, isSpare: true });
      }
    }
    return found;
  }

  function keepSpare(request: AdmissionRequest, result: AdmissionResult | undefined): void {
    if (result === undefined || result.refusedBy !== undefined) return spares.refuse(request.keyId);
    hold(request);
    spares.add({ request, result });
    secondEnd ??= atSecondEnd();
  }

  const atSecondEnd = (): Timer =>
    setTimeout(
      () => {
        giveBackSpares(currentSecond());
        secondEnd = spares.isEmpty() ? undefined : atSecondEnd();
      },
      1000 - (clock() % 1000),
    ).unref();

  /** @param current the second whose spare admissions stay */
  function giveBackSpares(current: number | undefined): void {
    for (const { request, result } of spares.removeOld(current)) {
      held.delete(request.number);
      const second = request.limits.requests_per_minute === null ? undefined : result.second;
      unused.push({ ...idOf(request), second });
    }
    startLoop();
  }

  /** @returns undefined if the database does not take the batch in time */
  async function tryToWrite(
    requests: readonly AdmissionRequest[],
    given: { ended: readonly AdmissionId[]; unused: readonly UnusedAdmission[] },
  ): Promise<AdmissionResult[] | undefined> {
    const deadline = monotonic() + waitLimitMs;
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        // Repeating a batch that was committed counts its requests twice, and holds no place twice.
        const work = store.admit({ instance, requests, ...given, isRepeated });
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

  const idOf = ({ keyId, number }: AdmissionRequest): AdmissionId => ({ keyId, instance, number });

  function hold(request: AdmissionRequest): AdmissionId | undefined {
    if (!holdsPlace(request.limits)) return undefined;
    const id = idOf(request);
    held.set(request.number, { ...id, tokens: request.tokens });
    return id;
  }

  /** @param result undefined if it is not known whether the database admitted the request */
  function admissionOf(request: AdmissionRequest, result: AdmissionResult | undefined): Admission {
    const { number } = request;
    const id = result?.refusedBy === undefined ? hold(request) : undefined;
    return {
      refusedBy: result?.refusedBy,
      waitMs: result?.waitMs ?? 0,
      used: (name: LimitName) => (result === undefined ? undefined : usedOf(result.load, name)),
      handOver() {
        held.delete(number);
        return id;
      },
      end: () => id && giveBack(id),
    };
  }

  return {
    async admit(keyId, limits, tokens) {
      if (degraded || closed) return unlimited;
      const spare = spares.take(keyId, limits, tokens, currentSecond());
      if (spare !== undefined) return admissionOf(spare.request, spare.result);
      lastNumber += 1;
      const request: AdmissionRequest = { keyId, limits, tokens, number: lastNumber };
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
      clearTimeout(secondEnd);
      giveBackSpares(undefined);
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
