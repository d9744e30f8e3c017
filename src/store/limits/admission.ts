import { dayNumberOf } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import { windowResetAt } from "../../time/windows.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { prepareLoads } from "./key-loads.ts";
import { type KeySecondRow, prepareAddSeconds, prepareGiveBack } from "./settling.ts";
import {
  addRequests,
  findExceeded,
  holdsPlace,
  isOfTokens,
  type KeyLoad,
  type KeySecond,
  minuteFreesAt,
  usedOf,
  windowEndOf,
} from "./windows.ts";
import type {
  AdmissionBatch,
  AdmissionRequest,
  AdmissionResult,
  HeldAdmission,
  LimitStore,
  UnusedAdmissions,
} from "./contract.ts";
import { isWorthWaiting } from "../../domain/admissions.ts";
import type { KeyId, LimitName } from "../../domain/keys.ts";
import { hasLimit, limitKinds, requestLimits } from "../../domain/limits.ts";
import { groupRows } from "../engine/rows.ts";

/** How soon a client may try again whose request waits for others of its key to end. */
const placeWaitMs = 1000;

/** How many times all spare admissions of a key have to fit, so that they hardly take anything from other requests. */
const timesSpare = 64;

export function prepareAdmit(engine: Engine, clock: WallClock): LimitStore["admit"] {
  const { transaction, lock, pipeline } = engine;
  const loads = prepareLoads(engine);
  const writes = prepareWrites(engine);

  /** When a refused request may be admitted. @param readSeconds of its key */
  async function waitOf(
    { limits, tokens }: AdmissionRequest,
    name: LimitName,
    load: KeyLoad,
    now: number,
    readSeconds: () => Promise<KeySecond[]>,
  ) {
    const limit = limits[name] ?? 0;
    const added = isOfTokens(name) ? Math.min(tokens, limit) : 1;
    const excess = usedOf(load, name) + added - limit;
    const freesAt = async (): Promise<number | undefined> => {
      const { counts, window } = limitKinds[name];
      if (window === "now") return undefined;
      // What the table does not hold yet was admitted in this batch, and so in this second.
      if (window === "minute" && counts === "requests")
        return minuteFreesAt(await readSeconds(), counts, excess) ?? windowEndOf(Math.floor(now / 1000));
      if (window === "minute") return minuteFreesAt(await readSeconds(), counts, excess);
      // Without the reserved tokens it may fit.
      return excess <= load.reserved ? undefined : windowResetAt(window, now);
    };
    const at = await freesAt();
    return at === undefined ? placeWaitMs : Math.max(1, at - now);
  }

  async function decide(requests: readonly AdmissionRequest[], now: number): Promise<AdmissionResult[]> {
    const loadOf = await loads.ofRequests(requests, now);
    // Once for all requests of a key that are refused together: it may send hundreds.
    const seconds = new Map<KeyId, Promise<KeySecond[]>>();
    const secondsOf = (keyId: KeyId): Promise<KeySecond[]> => {
      const read = seconds.get(keyId) ?? loads.seconds(keyId, now);
      seconds.set(keyId, read);
      return read;
    };
    const second = Math.floor(now / 1000);
    const results: AdmissionResult[] = [];
    for (const request of requests) {
      const { keyId, limits, tokens } = request;
      const load = loadOf(keyId);
      const refusedBy = findExceeded(load, limits, tokens);
      if (refusedBy === undefined) {
        const own = { ...addRequests(load, tokens, 1) };
        results.push({ load: own, refusedBy, waitMs: 0, second, spare: admitSpare(request, load) });
      } else {
        const waitMs = await waitOf(request, refusedBy, load, now, () => secondsOf(keyId));
        results.push({ load: { ...load }, refusedBy, waitMs, second, spare: 0 });
      }
    }
    return results;
  }

  async function admit(batch: AdmissionBatch): Promise<AdmissionResult[]> {
    const { instance, requests, ended, resized = [], unused = [], isRepeated = false } = batch;
    if (ended.length > 0) await writes.giveBack(ended)();
    if (requests.length + resized.length + unused.length === 0) return [];
    // Read after the lock, so that no two instances give away the same place.
    await lock("admissions");
    // After the lock too: until then the first attempt may be committed, and its places would refuse these requests.
    if (isRepeated) await writes.giveBack(requests.map(({ keyId, number }) => ({ keyId, instance, number })))();
    await pipeline(writes.resize(resized));
    const now = clock();
    const results = await decide(requests, now);
    const isAdmitted = (_: AdmissionRequest, index: number): boolean => results[index]?.refusedBy === undefined;
    const refused = requests.filter(({ mayWait = false }, index) => {
      const result = results[index];
      return result?.refusedBy !== undefined && !(mayWait && isWorthWaiting(result));
    });
    const admitted = requests.flatMap((request, index): Admitted[] =>
      isAdmitted(request, index) ? [{ request, count: 1 + (results[index]?.spare ?? 0) }] : [],
    );
    await pipeline([
      ...writes.hold(admitted, instance),
      // Those of a repeated batch may be taken back already.
      ...writes.countRequests(admitted, isRepeated ? [] : unused, now),
      ...writes.countRefusals(refused, now),
    ]);
    return results;
  }

  return (batch) => transaction(() => admit(batch));
}

/** Admits so many of the spare requests that they take little of what is left. @returns how many */
function admitSpare({ limits, tokens, spare }: AdmissionRequest, load: KeyLoad): number {
  let count = spare ?? 0;
  while (count > 0 && findExceeded(load, limits, tokens, timesSpare * count) !== undefined)
    count = Math.floor(count / 2);
  addRequests(load, tokens, count);
  return count;
}

interface Admitted {
  request: AdmissionRequest;
  /** With its spare ones. */
  count: number;
}

/** The statements that change what counts. Lists are empty if there is nothing to write. */
function prepareWrites(engine: Engine) {
  const { prepareInsert, tables } = engine;
  const columns = ["keyId", "instance", "number", "tokens"];
  const key = ["keyId", "instance", "number"];
  const hold = prepareInsert(tables.admissions, columns, { key, added: ["tokens"] });
  const giveBack = prepareGiveBack(engine);
  const addRefusals = prepareInsert(tables.keyRefusals, ["day", "keyId", "requests"], {
    key: ["day", "keyId"],
    added: ["requests"],
  });
  const addSeconds = prepareAddSeconds(engine);
  const ifAny = <Row>(rows: Row[], statementOf: (rows: Row[]) => Statement): Statement[] =>
    rows.length === 0 ? [] : [statementOf(rows)];

  const holdAll = (admissions: HeldAdmission[]): Statement[] =>
    ifAny(
      admissions.map(({ keyId, instance, number, tokens }) => [keyId, instance, number, tokens]),
      (rows) => hold(groupRows(rows, key.length)),
    );

  return {
    giveBack,
    resize: (admissions: readonly HeldAdmission[]): Statement[] => [
      ...ifAny([...admissions], giveBack),
      ...holdAll(admissions.filter(({ tokens }) => tokens > 0)),
    ],
    hold: (admitted: readonly Admitted[], instance: string): Statement[] =>
      holdAll(
        admitted
          .filter(({ request }) => holdsPlace(request.limits))
          .map(({ request: { keyId, number, tokens }, count }) => ({
            keyId,
            instance,
            number,
            tokens: count * tokens,
          })),
      ),
    countRequests: (admitted: readonly Admitted[], unused: readonly UnusedAdmissions[], now: number) =>
      ifAny(
        [
          ...admitted
            .filter(({ request }) => hasLimit(request.limits, requestLimits))
            .map(({ request, count }): KeySecondRow => [request.keyId, Math.floor(now / 1000), count, 0]),
          ...unused.map((one): KeySecondRow => [one.keyId, one.second, -one.requests, 0]),
        ],
        addSeconds,
      ),
    countRefusals: (requests: readonly AdmissionRequest[], now: number): Statement[] =>
      ifAny(
        requests.map(({ keyId }) => [dayNumberOf(now), keyId, 1]),
        (rows) => addRefusals(groupRows(rows, 2)),
      ),
  };
}
