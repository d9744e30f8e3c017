import type { ClientRule } from "../../domain/models.ts";
import type { CacheSums, RequestPosition } from "../../store/requests/contract.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { minutesPerHour, msPerMinute, timestampOf } from "../../time/seoul.ts";
import type { CacheBody, CacheQuery } from "./cache-contract.ts";

export interface CacheDeps {
  store: Pick<Store, "requests">;
  clock: WallClock;
  /** The rule that has a client's prompts come from caches. @param client its program and version */
  cacheRuleOf: (client: string) => ClientRule | undefined;
}

/** Many short reads of the database, as of the request log; what they do not reach is said. */
const maxReadMs = 200;

/** Less than that of a client's input from a cache is low, unless it has sent little. */
const [lowShare, leastRequests, leastTokens] = [0.2, 10, 100_000];

export const getCache =
  ({ store, clock, cacheRuleOf }: CacheDeps) =>
  async ({ query: { by, hours, limit } }: { query: CacheQuery }): Promise<CacheBody> => {
    const since = clock() - hours * minutesPerHour * msPerMinute;
    const { groups, next } = await readSums(store.requests, by, since);
    const sums = [...groups.values()].toSorted((a, b) => notCached(b) - notCached(a));
    const isReported = sums.some(({ cachedTokens }) => cachedTokens > 0);
    const shown = sums.slice(0, limit);
    const ids = by === "key" ? shown.map(({ of }) => Number(of)) : [];
    const names = new Map(await store.requests.keyNames(ids));
    return {
      by,
      hours,
      since: next === undefined ? null : timestampOf(next.endedAt),
      is_reported: isReported,
      rows: shown.map((one) => {
        const rule = by === "client" && one.mendedCount === 0 ? cacheRuleOf(one.latest) : undefined;
        return {
          name: by === "key" ? (names.get(Number(one.of)) ?? null) : by === "conversation" ? null : String(one.of),
          id: by === "key" || by === "conversation" ? Number(one.of) : null,
          request_count: one.requestCount,
          input_tokens: one.inputTokens,
          cached_tokens: one.cachedTokens,
          lost_count: one.lostCount,
          // Where nothing was reported at all, the backends may keep to themselves what they had cached.
          is_low: by === "client" && isLow(one) && (isReported || rule !== undefined),
          rule: rule ?? null,
        };
      }),
    };
  };

interface Group extends CacheSums {
  /** A client with its version. */
  latest: string;
}

async function readSums(log: CacheDeps["store"]["requests"], by: CacheQuery["by"], since: number) {
  const endsAt = performance.now() + maxReadMs;
  const groups = new Map<CacheSums["of"], Group>();
  let next: RequestPosition | undefined;
  do {
    const page = await log.cacheSums(by, since, next);
    for (const sums of page.sums) addTo(groups, by === "client" ? programOf(String(sums.of)) : sums.of, sums);
    ({ next } = page);
  } while (next !== undefined && performance.now() < endsAt);
  return { groups, next };
}

/** Without its version. */
const programOf = (client: string): string => client.split("/", 1)[0] ?? client;

function addTo(groups: Map<CacheSums["of"], Group>, of: CacheSums["of"], added: CacheSums): void {
  const group = groups.get(of);
  if (group === undefined) groups.set(of, { ...added, of, latest: String(added.of) });
  else
    for (const name of ["requestCount", "inputTokens", "cachedTokens", "lostCount", "mendedCount"] as const)
      group[name] += added[name];
}

const notCached = ({ inputTokens, cachedTokens }: CacheSums): number => inputTokens - cachedTokens;

const isLow = ({ requestCount, inputTokens, cachedTokens }: CacheSums): boolean =>
  requestCount >= leastRequests && inputTokens >= leastTokens && cachedTokens < inputTokens * lowShare;
