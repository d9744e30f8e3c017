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
import type { AdmissionBatch, AdmissionRequest, AdmissionResult, LimitStore } from "./limit-store.ts";
import { groupRows } from "./usage-rows.ts";

/** How soon a client may try again whose request waits for others of its key to end. */
const placeWaitMs = 1000;

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
    const results: AdmissionResult[] = [];
    for (const request of requests) {
      const { keyId, limits, tokens } = request;
      const load = loadOf(keyId);
      const refusedBy = findExceeded(load, limits, tokens);
      if (refusedBy === undefined) addRequest(load, tokens);
      const wait = (name: LimitName) => waitOf(request, name, load, now, () => secondsOf(keyId));
      results.push({ load: { ...load }, refusedBy, waitMs: refusedBy === undefined ? 0 : await wait(refusedBy) });
    }
    return results;
  }

  async function admit({ instance, requests, ended, isRepeated = false }: AdmissionBatch): Promise<AdmissionResult[]> {
    if (ended.length > 0) await writes.giveBack(ended)();
    if (requests.length === 0) return [];
    // Read after the lock, so that no two instances give away the same place.
    await lock("admissions");
    // After the lock too: until then the first attempt may be committed, and its places would refuse these requests.
    if (isRepeated) await writes.giveBack(requests.map(({ keyId, number }) => ({ keyId, instance, number })))();
    const now = clock();
    const results = await decide(requests, now);
    const isAdmitted = (_: AdmissionRequest, index: number): boolean => results[index]?.refusedBy === undefined;
    const admitted = requests.filter(isAdmitted);
    const refused = requests.filter((request, index) => !isAdmitted(request, index));
    await pipeline([
      ...writes.hold(
        admitted.filter(({ limits }) => holdsPlace(limits)),
        instance,
      ),
      ...writes.countRequests(admitted, now),
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
    countRequests: (requests: readonly AdmissionRequest[], now: number): Statement[] =>
      ifAny(
        requests
          .filter(({ limits }) => limits.requests_per_minute !== null)
          .map(({ keyId }): KeySecondRow => [keyId, Math.floor(now / 1000), 1, 0]),
        addSeconds,
      ),
    countRefusals: (requests: readonly AdmissionRequest[], now: number): Statement[] =>
      ifAny(
        requests.map(({ keyId }) => [dayNumberOf(now), keyId, 1]),
        (rows) => addRefusals(groupRows(rows, 2)),
      ),
  };
}
