import { randomBytes } from "node:crypto";
import type { Log } from "../log/log.ts";
import { createInstanceWatch } from "./instance-watch.ts";
import { createReserves, type Reserve } from "./reserves.ts";
import { createSpareStock } from "./spare-admissions.ts";
import { holdsPlace, usedOf } from "../store/limits/windows.ts";
import type {
  AdmissionBatch,
  AdmissionRequest,
  AdmissionResult,
  HeldAdmission,
  LimitStore,
  UnusedAdmissions,
} from "../store/limits/contract.ts";
import type { MaybePromise } from "../store/engine/maybe-promise.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { within } from "../time/wait.ts";
import type { KeyId, KeyLimits, LimitName } from "../domain/keys.ts";
import { hasLimit, placeLimits, requestLimits } from "../domain/limits.ts";
import type { Admission, AdmissionId } from "../domain/admissions.ts";

/** Admits the requests of keys with limits. */
export interface Admissions {
  /**
   * @param tokens reserved until the request ends
   * @param mayWait the request asks again if it is worth waiting: then a refusal does not count
   */
  admit(keyId: KeyId, limits: KeyLimits, tokens: number, mayWait?: boolean): MaybePromise<Admission>;
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

interface PendingAdmission extends Pick<AdmissionRequest, "keyId" | "limits" | "tokens" | "mayWait"> {
  settled: PromiseWithResolvers<Admission>;
}

/** What is asked for, and for whom. */
interface AskedAdmission {
  request: AdmissionRequest;
  /** Holds its tokens; undefined if the request does, or has none. */
  reserve: Reserve | undefined;
  settled: PendingAdmission["settled"];
}

/** What a request holds. */
type Hold = Pick<Admission, "handOver" | "end">;

/** A request that counts in a second. */
type Counted = Pick<AdmissionRequest, "keyId" | "limits"> & Pick<AdmissionResult, "second">;

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
  const held = new Map<number, HeldAdmission>();
  let lastNumber = 0;
  let waiting: PendingAdmission[] = [];
  let ended: AdmissionId[] = [];
  let unused: UnusedAdmissions[] = [];
  const spares = createSpareStock();
  const reserves = createReserves();
  let secondEnd: Timer | undefined;
  /** Reserves that no batch of requests has written until the second's end. */
  let areReservesDue = false;
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
    listHeld: () => [...held.values()].map(heldOf),
    onStoredAgain(stored) {
      // What ended since may have been given back before it was stored. What is not counted yet is released too early, but
      // so it was when the others took this process for dead.
      ended.push(...stored.filter(({ number }) => !held.has(number)));
      reserves.markAllStale();
      areReservesDue = reserves.hasStale();
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

  const hasWork = (): boolean => (waiting.length + ended.length + unused.length > 0 || areReservesDue) && !degraded;
  const currentSecond = (): number => Math.floor(clock() / 1000);

  function startLoop(): void {
    if (hasWork() && !closed) loop ??= writeAll();
  }

  async function writeAll(): Promise<void> {
    // Requests of one tick share a transaction.
    await new Promise(setImmediate);
    while (hasWork()) {
      const [asked, given] = [ask(waiting), { ended, unused }];
      [waiting, ended, unused, areReservesDue] = [[], [], [], false];
      const requests = asked.map(({ request }) => request);
      const resized = reserves.takeStale();
      const results = await tryToWrite({ requests, ...given, resized: resized.map(heldOf) });
      if (results === undefined) {
        ended.push(...given.ended);
        for (const one of resized) reserves.markStale(one);
        areReservesDue = reserves.hasStale();
      }
      for (const [index, one] of asked.entries()) {
        const result = results?.[index];
        one.settled.resolve(
          admissionOf(result, cancellable(holdOf(one, result), result && { ...one.request, ...result })),
        );
        if (one.request.spare !== undefined) keepSpares(one, result);
      }
      for (const { number } of reserves.removeEmpty(resized)) held.delete(number);
    }
    // The failed batch's requests run, and so do those that arrived meanwhile.
    if (degraded) for (const one of waiting.splice(0)) one.settled.resolve(unlimited);
    // Reset here, not when the promise resolves: a request that arrives in between must start the next loop.
    loop = undefined;
  }

  /** Asks for more like them with one request of each key, the one that needs the most tokens. */
  function ask(pending: readonly PendingAdmission[]): AskedAdmission[] {
    const second = currentSecond();
    let left = maxSpares;
    const most = new Map<PendingAdmission, number>();
    const reserveOf = new Map<KeyId, Reserve | undefined>();
    for (const [keyId, own] of Map.groupBy(pending, (one) => one.keyId)) {
      const largest = own.reduce((a, b) => (b.tokens > a.tokens ? b : a));
      const wanted = Math.min(spares.wanted(keyId, largest.limits, own.length, second), left);
      left -= wanted;
      most.set(largest, wanted);
      reserveOf.set(keyId, reserveFor(largest, wanted > 0));
    }
    return pending.map((one) => {
      const { keyId, limits, tokens, settled, mayWait = false } = one;
      const reserve = mayShare(limits) ? reserveOf.get(keyId) : undefined;
      const wanted = most.get(one) ?? 0;
      const request: AdmissionRequest = { keyId, limits, tokens, number: reserve?.number ?? ++lastNumber };
      if (wanted > 0) request.spare = wanted;
      if (mayWait) request.mayWait = true;
      return { request, reserve, settled };
    });
  }

  /** To be written with the next batch: one that is repeated must not add to it twice. */
  function reserveFor({ keyId, limits }: PendingAdmission, isBusy: boolean): Reserve | undefined {
    if (!mayShare(limits)) return undefined;
    const found = reserves.find(keyId);
    if (found === undefined && !isBusy) return undefined;
    const reserve = found ?? reserves.add({ keyId, instance, number: ++lastNumber });
    held.set(reserve.number, reserve);
    reserves.markStale(reserve);
    return reserve;
  }

  function keepSpares({ request, reserve }: AskedAdmission, result: AdmissionResult | undefined): void {
    const { keyId, limits, tokens } = request;
    if (result === undefined || result.spare === 0) return spares.refuse(keyId);
    const { load, second, spare } = result;
    if (reserve !== undefined) reserve.tokens += spare * tokens;
    spares.add({ keyId, limits, tokens, reserve, load, second, left: spare });
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
    for (const { keyId, limits, tokens, reserve, second, left } of spares.removeOld(current)) {
      if (hasLimit(limits, requestLimits)) unused.push({ keyId, second, requests: left });
      if (reserve !== undefined) reserves.release(reserve, left * tokens);
    }
    areReservesDue = reserves.hasStale();
    startLoop();
  }

  /** @returns undefined if the database does not take the batch in time */
  async function tryToWrite(
    batch: Omit<AdmissionBatch, "instance" | "isRepeated">,
  ): Promise<AdmissionResult[] | undefined> {
    const deadline = monotonic() + waitLimitMs;
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        // Repeating a batch that was committed counts its requests twice, and holds no place twice.
        const work = store.admit({ instance, ...batch, isRepeated });
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
  function holdOf({ request, reserve }: AskedAdmission, result: AdmissionResult | undefined): Hold {
    if (result?.refusedBy !== undefined || !holdsPlace(request.limits)) return holdsNothing;
    if (reserve === undefined) return holdAlone(request);
    reserve.tokens += request.tokens;
    return holdIn(reserve, request.tokens);
  }

  function holdAlone({ keyId, number, tokens }: AdmissionRequest): Hold {
    const id = { keyId, instance, number };
    held.set(number, { ...id, tokens });
    return {
      handOver() {
        held.delete(number);
        return id;
      },
      end: () => giveBack(id),
    };
  }

  /** The count is committed before the request ends. Until the reserve is written, the database has both. */
  function holdIn(reserve: Reserve, tokens: number): Hold {
    let isEnded = false;
    return {
      handOver: () => ({ keyId: reserve.keyId }),
      end() {
        if (isEnded || closed) return;
        isEnded = true;
        reserves.release(reserve, tokens);
        secondEnd ??= atSecondEnd();
      },
    };
  }

  /** A request that the backend never gets does not count as one. */
  function cancellable(hold: Hold, counted: Counted | undefined): Hold & Pick<Admission, "cancel"> {
    return {
      ...hold,
      cancel() {
        hold.end();
        if (counted === undefined || counted.limits.requests_per_minute === null) return;
        unused.push({ keyId: counted.keyId, second: counted.second, requests: 1 });
        startLoop();
      },
    };
  }

  async function admitWithOthers(asked: Omit<PendingAdmission, "settled">): Promise<Admission> {
    if (!isListed) {
      await within(waitLimitMs, watch.start(), tooLate).catch(enterDegraded);
      isListed = true;
    }
    if (degraded) return unlimited;
    const settled = Promise.withResolvers<Admission>();
    waiting.push({ ...asked, settled });
    startLoop();
    return settled.promise;
  }

  return {
    admit(keyId, limits, tokens, mayWait = false) {
      if (degraded || closed) return unlimited;
      const second = currentSecond();
      const spare = spares.take(keyId, limits, tokens, second);
      if (spare === undefined) return admitWithOthers({ keyId, limits, tokens, mayWait });
      const { reserve, load } = spare;
      const hold = reserve === undefined ? holdsNothing : holdIn(reserve, spare.tokens);
      return admissionOf({ load }, cancellable(hold, { keyId, limits, second }));
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

/** Whether requests may hold what they reserve together: a place is counted by itself. */
const mayShare = (limits: KeyLimits): boolean => holdsPlace(limits) && !hasLimit(limits, placeLimits);

/** As it is now. */
const heldOf = ({ keyId, instance, number, tokens }: HeldAdmission): HeldAdmission => ({
  keyId,
  instance,
  number,
  tokens,
});

const holdsNothing: Hold = { handOver: () => undefined, end: () => {} };

/** @param result undefined if the database has not responded */
const admissionOf = (
  result: (Pick<AdmissionResult, "load"> & Partial<AdmissionResult>) | undefined,
  { handOver, end, cancel = end }: Hold & Partial<Pick<Admission, "cancel">>,
): Admission => ({
  refusedBy: result?.refusedBy,
  waitMs: result?.waitMs ?? 0,
  used: (name: LimitName) => result && usedOf(result.load, name),
  handOver,
  end,
  cancel,
});

/** For a request that was admitted without the database. */
const unlimited = admissionOf(undefined, holdsNothing);
