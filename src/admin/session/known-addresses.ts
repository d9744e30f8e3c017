import type { Log } from "../../log/log.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";

const settingName = "login_addresses";
const retentionMs = 30 * 24 * 60 * 60 * 1000;
const maxAddresses = 1000;
/** How long this process may not know an address that logged in at another one. */
const maxAgeMs = 60_000;

/** The addresses that logged in within the last 30 days. Kept in the database, and looked up in memory. */
export function createKnownAddresses({
  store: { settings },
  clock,
  log,
}: {
  store: Pick<Store, "settings">;
  clock: WallClock;
  log: Log;
}) {
  /** When each address last logged in, epoch milliseconds. */
  let logins: Promise<ReadonlyMap<string, number>> = load().catch(() => new Map());
  let loadedAt = clock();

  async function load(): Promise<Map<string, number>> {
    return new Map(JSON.parse((await settings.find(settingName)) ?? "[]") as [string, number][]);
  }

  function refresh(): void {
    if (clock() - loadedAt < maxAgeMs) return;
    loadedAt = clock();
    // While the database is unavailable, known addresses stay known.
    load().then(
      (loaded) => (logins = Promise.resolve(loaded)),
      () => {},
    );
  }

  async function save(address: string): Promise<void> {
    const now = clock();
    const others = [...(await load())].filter(([other, at]) => other !== address && now - at < retentionMs);
    const latest = [[address, now] as const, ...others].slice(0, maxAddresses);
    logins = Promise.resolve(new Map(latest));
    await settings.set(settingName, JSON.stringify(latest));
  }

  return {
    async has(address: string): Promise<boolean> {
      refresh();
      const at = (await logins).get(address);
      return at !== undefined && clock() - at < retentionMs;
    },
    add: (address: string) =>
      save(address).catch((error: unknown) => log.warn("Login address not saved", { error: String(error) })),
  };
}
