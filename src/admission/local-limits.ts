import { judge, type Judged } from "../store/limits/judge.ts";
import { type KeyLoad, noLoad, usedOf } from "../store/limits/windows.ts";
import { minuteWindowSeconds, windowResetAt } from "../time/windows.ts";
import type { KeyLimits } from "../domain/keys.ts";
import { limitKinds, limitNames, perLimit } from "../domain/limits.ts";
import { countedOf } from "../store/limits/windows.ts";
import type { KeyLease } from "./key-leases.ts";

/**
 * What a process enforces while the database does not answer: of what a limit had left when it last did, its share. All
 * processes together admit at most one request more than that for each of them.
 * @param instances how many processes lived then
 */
export function judgeLocally(
  lease: KeyLease,
  { limits, tokens }: { limits: KeyLimits; tokens: number },
  { now, instances }: { now: number; instances: number },
): Judged | undefined {
  const others = knownLoad(lease, now);
  const shares = perLimit((name) => {
    const limit = limits[name];
    if (limit === null) return null;
    const used = usedOf(others, name);
    return used < limit ? used + Math.ceil((limit - used) / instances) : limit;
  });
  const own: KeyLoad = {
    ...others,
    inFlight: others.inFlight + lease.places,
    reserved: others.reserved + lease.tokens + lease.tokensMeanwhile,
    minuteRequests: others.minuteRequests + requestsMeanwhile(lease, now),
  };
  return judge(own, { limits: shares, requests: [tokens] })[0];
}

/** What counted when the database last answered, and still does, without what is held here. */
function knownLoad({ known }: KeyLease, now: number): KeyLoad {
  const load = { ...noLoad };
  for (const name of limitNames) {
    const kind = limitKinds[name];
    const counted = countedOf(kind);
    if (counted !== undefined && windowResetAt(kind.window, known.at) > now) load[counted] = known.load[counted];
  }
  load.inFlight = Math.max(0, known.load.inFlight - known.places);
  load.reserved = Math.max(0, known.load.reserved - known.tokens);
  return load;
}

/** What the database has to add to the requests of the last minute. */
const requestsMeanwhile = ({ corrections, sent }: KeyLease, now: number): number =>
  [...corrections, ...sent].reduce(
    (sum, { second, requests }) => (now / 1000 - second < minuteWindowSeconds ? sum + requests : sum),
    0,
  );
