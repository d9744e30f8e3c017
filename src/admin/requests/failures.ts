import type { AdminDeps } from "../http/deps.ts";
import type { OutcomeSum } from "../../domain/requests.ts";
import type { OutcomePoint } from "../../store/traffic/contract.ts";
import { mostFirst } from "../../store/traffic/outcome-reads.ts";
import { msPerMinute, timestampOf } from "../../time/seoul.ts";
import { readsOf, trafficRange } from "./latency.ts";
import type { FailuresBody, FailuresQuery } from "./traffic-contract.ts";

const maxFailures = 200;
/** Rows that are read of a part of the range. More than are listed: what is rare in one part may be common in another. */
const maxFailuresPerRead = 2000;

export const listFailures =
  ({ store, clock }: AdminDeps) =>
  async ({ query }: { query: FailuresQuery }): Promise<FailuresBody> => {
    const { hours, key_id } = query;
    const window = trafficRange(clock(), hours, query.bucket_minutes);
    const points: OutcomePoint[] = [];
    const sums = new Map<string, OutcomeSum>();
    for (const range of readsOf(window)) {
      const found = await store.traffic.outcomes(range, maxFailuresPerRead, key_id);
      points.push(...found.points);
      for (const failure of found.failures) addFailure(sums, failure);
    }
    const failures = mostFirst([...sums.values()]).slice(0, maxFailures);
    const names = new Map(await store.requests.keyNames([...new Set(failures.map(({ keyId }) => keyId))]));
    return {
      hours,
      bucket_minutes: window.bucketMinutes,
      points: pointsOf(points),
      rows: failures.map(({ outcome, code, keyId, count, lastAt }) => ({
        outcome,
        code,
        key_id: keyId === 0 ? null : keyId,
        key_name: names.get(keyId) ?? null,
        count,
        last_at: timestampOf(lastAt),
      })),
    };
  };

function addFailure(sums: Map<string, OutcomeSum>, failure: OutcomeSum): void {
  const id = `${failure.keyId} ${failure.outcome} ${failure.code}`;
  const sum = sums.get(id);
  if (sum === undefined) sums.set(id, failure);
  else {
    sum.count += failure.count;
    sum.lastAt = Math.max(sum.lastAt, failure.lastAt);
  }
}

function pointsOf(found: readonly OutcomePoint[]): FailuresBody["points"] {
  const points: FailuresBody["points"] = [];
  for (const [minute, outcomes] of Map.groupBy(found, (one) => one.minute)) {
    points.push({
      bucket_start: timestampOf(minute * msPerMinute),
      request_count: outcomes.reduce((sum, { count }) => sum + count, 0),
      failed_count: outcomes.reduce((sum, { failedCount }) => sum + failedCount, 0),
      outcomes: Object.fromEntries(outcomes.map(({ outcome, count }) => [outcome, count])),
    });
  }
  return points;
}
