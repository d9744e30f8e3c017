import { minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { demoEmbeddingModel, demoModel, demoSmallModel } from "./client-behaviour.ts";
import { noise, type PlannedRequest } from "./traffic.ts";

/** How fast each simulated response comes to whoever tries the demo; one frame is one token. */
const visitorTokensPerSecond = 30;

/** The one that stands behind the demo. */
export const startDemoBackend = (): Pick<Simulator, "url" | "stop"> =>
  startSimulator({
    models: [demoModel, demoSmallModel, demoEmbeddingModel],
    framesPerSecond: visitorTokensPerSecond,
    recordRequests: 0,
  });

/** How the simulated backend responds to a request. */
export interface Speed {
  /** Until it responds. */
  firstByteMs: number;
  tokensPerSecond: number;
}

/**
 * Responses take longer under load, and much longer in a slow phase. The same arguments always give the same speed.
 * @param load of the backend, 0 to 1
 */
export function speedOf({ startsAt, inputTokens }: Omit<PlannedRequest, "outputTokens">, load: number): Speed {
  const chance = (salt: number): number => noise(startsAt * 31 + salt);
  const slowness = slownessAt(Math.floor(startsAt / msPerMinute));
  // A few requests wait for much longer than the others.
  const bad = chance(1) < 0.03 ? 2 + 3 * chance(2) : 1;
  return {
    firstByteMs: Math.round((60 + inputTokens / 40) * (0.7 + 0.6 * chance(3)) * (1 + 2 * load * load) * slowness * bad),
    tokensPerSecond: Math.max(3, Math.round(((44 - 16 * load) * (0.85 + 0.3 * chance(4))) / slowness)),
  };
}

const halfDayMinutes = 12 * minutesPerHour;

/** By how much the backend is slower than usual: once in each half of a day, for half an hour or so, by two to five times. */
export function slownessAt(minute: number): number {
  const half = Math.floor(minute / halfDayMinutes);
  const begin = (0.5 + 10 * noise(half * 7 + 1)) * minutesPerHour;
  const length = 20 + 25 * noise(half * 7 + 2);
  const at = minute - half * halfDayMinutes;
  return at >= begin && at < begin + length ? 2 + 3 * noise(half * 7 + 3) : 1;
}
