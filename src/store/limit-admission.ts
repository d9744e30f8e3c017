import type { KeyId, LimitName } from "../domain.ts";
import { dayNumberOf, monthOf, startOfDayNumber } from "../time/seoul.ts";
import type { WallClock } from "../time/clock.ts";
import type { Engine, Statement } from "./engine.ts";
import { prepareLoads } from "./key-loads.ts";
import { byKey, type KeySecondRow, prepareAddSeconds, prepareGiveBack } from "./limit-settling.ts";
import {
  addRequest,
  findExceeded,
  holdsPlace,
  isOfTokens,
  type KeyLoad,
  type KeySecond,
  minuteFreesAt,
  usedOf,
  windowEndOf,
} from "./limit-windows.ts";
import type { AdmissionBatch, AdmissionRequest, AdmissionResult, LimitStore, UnusedAdmission } from "./limit-store.ts";
import { groupRows } from "./usage-rows.ts";

/** How soon a client may try again whose request waits for others of its key to end. */
const placeWaitMs = 1000;

/** How many times all spare admissions of a key have to fit, so that they hardly take anything from other requests. */
const timesSpare = 64;

/** @param prune what else an admission runs */
export function prepareAdmit(
  engine: Engine,
  clock: WallClock,
  prune: (now: number) => Statement[] = () => [],
): LimitStore["admit"] {
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
      if (name === "max_concurrency") return undefined;
      // What the table does not hold yet was admitted in this batch, and so in this second.
      if (name === "requests_per_minute")
        return minuteFreesAt(await readSeconds(), "requests", excess) ?? windowEndOf(Math.floor(now / 1000));
      if (name === "tokens_per_minute") return minuteFreesAt(await readSeconds(), "tokens", excess);
      // Without the reserved tokens it may fit.
      if (excess <= load.reserved) return undefined;
      const isDay = name === "tokens_per_day";
      return startOfDayNumber(isDay ? dayNumberOf(now) + 1 : monthOf(now).nextFirstDay);
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
    const spares = new Map<KeyId, number>();
    const results: AdmissionResult[] = [];
    for (const request of requests) {
      const { keyId, limits, tokens, isSpare = false } = request;
      const load = loadOf(keyId);
      if (isSpare) spares.set(keyId, (spares.get(keyId) ?? 0) + 1);
      const times = isSpare ? timesSpare * (spares.get(keyId) ?? 0) : 1;
      const refusedBy = findExceeded(load, limits, tokens, times);
      if (refusedBy === undefined) addRequest(load, tokens);
      const isRefused = refusedBy !== undefined && !isSpare;
      const waitMs = isRefused ? await waitOf(request, refusedBy, load, now, () => secondsOf(keyId)) : 0;
      results.push({ load: { ...load }, refusedBy, waitMs, second });
    }
    return results;
  }

  async function admit(batch: AdmissionBatch): Promise<AdmissionResult[]> {
    const { instance, requests, ended, unused = [], isRepeated = false } = batch;
    if (ended.length + unused.length > 0) await writes.giveBack([...ended, ...unused])();
    if (requests.length + unused.length === 0) return [];
    // Read after the lock, so that no two instances give away the same place.
    await lock("admissions");
    // After the lock too: until then the first attempt may be committed, and its places would refuse these requests.
    if (isRepeated) await writes.giveBack(requests.map(({ keyId, number }) => ({ keyId, instance, number })))();
    const now = clock();
    const results = await decide(requests, now);
    const isAdmitted = (_: AdmissionRequest, index: number): boolean => results[index]?.refusedBy === undefined;
    const admitted = requests.filter(isAdmitted);
    const refused = requests.filter((request, index) => request.isSpare !== true && !isAdmitted(request, index));
    await pipeline([
      ...writes.hold(
        admitted.filter(({ limits }) => holdsPlace(limits)),
        instance,
      ),
      // Those of a repeated batch may be taken back already.
      ...writes.countRequests(admitted, isRepeated ? [] : unused, now),
      ...writes.countRefusals(refused, now),
      ...prune(now),
    ]);
    return results;
  }

  return (batch) => transaction(() => admit(batch));
}

/** The statements that change what counts. Lists are empty if there is nothing to write. */
function prepareWrites(engine: Engine) {
  const { prepareInsert, tables } = engine;
  const hold = prepareInsert(tables.admissions, ["keyId", "instance", "number", "tokens"], {
    key: ["keyId", "instance", "number"],
    added: [],
  });
  const addRefusals = prepareInsert(tables.keyRefusals, ["day", "keyId", "requests"], {
    key: ["day", "keyId"],
    added: ["requests"],
  });
  const addSeconds = prepareAddSeconds(engine);
  const ifAny = <Row>(rows: Row[], statementOf: (rows: Row[]) => Statement): Statement[] =>
    rows.length === 0 ? [] : [statementOf(rows)];

  return {
    giveBack: prepareGiveBack(engine),
    hold: (requests: readonly AdmissionRequest[], instance: string): Statement[] =>
      ifAny(
        requests.map(({ keyId, number, tokens }) => [keyId, instance, number, tokens] as const).toSorted(byKey),
        hold,
      ),
    countRequests: (requests: readonly AdmissionRequest[], unused: readonly UnusedAdmission[], now: number) =>
      ifAny(
        [
          ...requests
            .filter(({ limits }) => limits.requests_per_minute !== null)
            .map(({ keyId }): KeySecondRow => [keyId, Math.floor(now / 1000), 1, 0]),
          ...unused.flatMap(({ keyId, second }): KeySecondRow[] =>
            second === undefined ? [] : [[keyId, second, -1, 0]],
          ),
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
