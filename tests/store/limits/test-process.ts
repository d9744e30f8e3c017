import type { LimitStore } from "../../../src/store/limits/contract.ts";
import { othersEndMs } from "../../../src/domain/admissions.ts";
import { type Judged, judge, type KeyLoad, noLoad, waitOf } from "../../../src/store/limits/judge.ts";
import type { KeyId, KeyLimits } from "../../../src/domain/keys.ts";

export interface TestResult extends Pick<Judged, "refusedBy"> {
  load: KeyLoad;
  waitMs: number;
  ahead: number;
}

interface Asked {
  keyId?: KeyId;
  limits: KeyLimits;
  /** What each request reserves. */
  requests: readonly number[];
  ahead?: number;
  corrections?: { second: number; requests: number }[];
}

/** Takes leases as a process does, one call after the other, and counts what it refuses. */
export function createTestProcess(store: Pick<LimitStore, "take">, instance = "a") {
  const held = new Map<KeyId, { places: number; tokens: number }>();
  let version = 0;
  const heldOf = (keyId: KeyId): { places: number; tokens: number } => {
    const found = held.get(keyId) ?? { places: 0, tokens: 0 };
    held.set(keyId, found);
    return found;
  };

  async function take({ keyId = 1, limits, requests, ahead = 0, corrections = [] }: Asked, refused = 0) {
    const own = heldOf(keyId);
    version += 1;
    const sizes = requests.map((tokens) => ({ tokens }));
    const request = { subjects: [{ id: keyId, limits, ...own, corrections, refused }], requests: sizes, ahead };
    const [lease] = await store.take({ instance, version, requests: [request] });
    if (lease === undefined) throw new Error("no lease");
    return { lease, request };
  }

  return {
    instance,
    async admit(asked: Asked): Promise<TestResult[]> {
      const own = heldOf(asked.keyId ?? 1);
      const { lease, request } = await take(asked);
      const results: TestResult[] = [];
      const { limits } = asked;
      const [{ load: before, seconds } = { load: noLoad }] = lease.subjects;
      for (const [index, judged] of judge([{ limits, load: before }], request.requests).entries()) {
        const tokens = asked.requests[index] ?? 0;
        const {
          refusedBy,
          bounds: [{ load } = { load: noLoad }],
        } = judged;
        const waitMs = waitOf(judged, { now: lease.now, seconds }) ?? othersEndMs;
        if (refusedBy === undefined) Object.assign(own, { places: own.places + 1, tokens: own.tokens + tokens });
        results.push({ refusedBy, load, waitMs, ahead: lease.ahead });
      }
      const refused = results.filter(({ refusedBy }) => refusedBy !== undefined).length;
      if (refused > 0) await take({ ...asked, requests: [], ahead: 0, corrections: [] }, refused);
      return results;
    },
    /** Ends one request. */
    async end(limits: KeyLimits, tokens = 0, keyId: KeyId = 1): Promise<void> {
      const own = heldOf(keyId);
      Object.assign(own, { places: own.places - 1, tokens: own.tokens - tokens });
      await take({ keyId, limits, requests: [] });
    },
    /** Writes again what it holds. */
    write: (limits: KeyLimits, keyId: KeyId = 1) => take({ keyId, limits, requests: [] }),
    forget: () => held.clear(),
  };
}
