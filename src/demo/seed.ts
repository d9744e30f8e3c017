import { randomHex } from "../admin/secrets.ts";
import type { WallClock } from "../time/clock.ts";
import type { Log } from "../log/log.ts";
import { minutesPerDay, msPerMinute } from "../time/seoul.ts";
import { openStore } from "../store/open.ts";
import type { Key, Store } from "../store/store.ts";
import { personas, type Character } from "./personas.ts";
import { inventHistory, writeHistory } from "./history.ts";

export interface Seeded {
  /** The visitor's own. */
  key: string;
  gpuHostKey: string;
  characters: { character: Character; key: string }[];
}

/** Fills an empty data folder with keys and thirty days of history. */
export async function seed(options: { dataDir: string; clock: WallClock; log: Log }): Promise<Seeded> {
  const store = await openStore(options);
  try {
    return await fill(store, options.clock());
  } finally {
    await store.close();
  }
}

async function fill(store: Store, now: number): Promise<Seeded> {
  const characters: { character: Character; key: Key }[] = [];
  for (const character of personas) {
    const daysAgo = character.traffic.daysAgo[0];
    characters.push({ character, key: await createKey(store, character.keyName, now, daysAgo) });
  }
  const gpuHost = await createKey(store, "GPU host", now, 30);
  const visitor = await createKey(store, "Your key", now, 0);
  const keys = characters.map(({ character, key }) => ({ keyId: key.id, traffic: character.traffic }));
  await writeHistory(store, inventHistory(keys, now), gpuHost.id);
  for (const { character, key } of characters) {
    if (character.habit === undefined) await store.keys.update(key.id, { isActive: false });
  }
  return {
    key: visitor.key,
    gpuHostKey: gpuHost.key,
    characters: characters.map(({ character, key }) => ({ character, key: key.key })),
  };
}

async function createKey(store: Store, name: string, now: number, daysAgo: number): Promise<Key> {
  const createdAt = now - daysAgo * minutesPerDay * msPerMinute;
  const key = await store.keys.create({ name, key: randomHex(16), createdAt });
  if (key === "collision") throw new Error("A random key exists already");
  return key;
}
