import { dayNumberOf, minutesPerDay, msPerMinute } from "../time/seoul.ts";
import type { UsageIncrement } from "../domain/usage.ts";
import type { CounterReading } from "../store/usage/contract.ts";

const days = 3;
/** No longer than between two readings that are compared. */
const stepMinutes = 10;
/** What clients leave behind when they go: the backend generated it, and did not report it. */
const uncountedShare = 0.004;
/** On one day, somebody reached the backend without Tollgate. */
const drift = { daysAgo: 1, share: 0.11 };

/** The counters of a backend that served what was counted, and a little more. @param now minutes since the epoch */
export function pastCounters(counts: readonly UsageIncrement[], now: number): CounterReading[] {
  const from = now - days * minutesPerDay;
  const driftDay = dayNumberOf(now * msPerMinute) - drift.daysAgo;
  const readings: CounterReading[] = [];
  let [generated, prompt] = [0, 0];
  const byTime = counts.filter(({ minute }) => minute >= from).toSorted((a, b) => a.minute - b.minute);
  let next = 0;
  for (let minute = from; minute <= now; minute += Math.min(stepMinutes, Math.max(1, now - minute))) {
    for (let one = byTime[next]; one !== undefined && one.minute < minute; one = byTime[++next]) {
      const isDrifting = dayNumberOf(one.minute * msPerMinute) === driftDay;
      generated += one.outputTokens * (1 + (isDrifting ? drift.share : uncountedShare));
      prompt += one.inputTokens * (1 + (isDrifting ? drift.share : 0));
    }
    const at = minute * msPerMinute;
    readings.push({ source: "vllm", at, generatedTokens: Math.round(generated), promptTokens: Math.round(prompt) });
  }
  return readings;
}
