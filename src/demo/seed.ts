// The demo: thirty days of the past (here), and the clients, the GPU host and the backend that go on from there.
//
// It keeps true: past and present come from the same functions of time (`traffic.ts`, `personas.ts`), which give the
// same for the same arguments. The past is written into the database before the server starts; what is simulated then
// uses HTTP, as any client does. The server is one that `serve` would start, and does not know that it is in a demo.

import { randomBytes } from "node:crypto";
import { openStore, type StoreOptions } from "../store/open.ts";
import type { Key } from "../store/keys/contract.ts";
import { openWriter } from "../store/sqlite/engine.ts";
import { databaseFile } from "../store/sqlite/open.ts";
import type { Store } from "../store/store.ts";
import { minuteOf, msPerDay } from "../time/seoul.ts";
import { wait } from "../time/wait.ts";
import { runSimulatedGpuAgent } from "./gpu-host.ts";
import { generatePast, loadInMinute, writePast } from "./past.ts";
import { writePastGpus } from "./past-gpus.ts";
import { type Persona, personas } from "./personas.ts";
import { createFaults, runSimulatedClient } from "./simulated-clients.ts";
import { isActiveAt } from "./traffic.ts";

interface SeedOptions extends Pick<StoreOptions, "dataDir" | "clock" | "log"> {
  /** Host and port, as the request log shows them. */
  backend: string;
  /** Settings that the console stores, by name. */
  settings: Readonly<Record<string, string>>;
}

/** Fills an empty data folder with keys and thirty days of the past. */
export async function seed({ backend, settings, ...options }: SeedOptions) {
  const store = await openStore(options);
  try {
    for (const [name, value] of Object.entries(settings)) await store.settings.set(name, value);
    return await fill(store, options, backend);
  } finally {
    await store.close();
  }
}

async function fill(
  store: Store,
  { dataDir, clock, log }: Pick<SeedOptions, "dataDir" | "clock" | "log">,
  backend: string,
) {
  const now = clock();
  const clients: { persona: Persona; key: Key }[] = [];
  for (const persona of personas) {
    const daysAgo = persona.traffic.daysAgo[0];
    clients.push({ persona, key: await createKey(store, persona.keyName, now, daysAgo) });
  }
  const gpuHost = await createKey(store, "GPU host", now, 30);
  const visitor = await createKey(store, "Your key", now, 0);
  const keys = clients.map(({ persona, key }) => ({ keyId: key.id, persona }));
  const past = generatePast(keys, now, backend);
  await writePast(store, past, log);
  const engine = openWriter(databaseFile(dataDir));
  await writePastGpus(engine, past.gpus);
  engine.close();
  for (const { persona, key } of clients) {
    if (persona.details !== undefined) await store.keys.update(key.id, persona.details);
    if (!isActiveAt(persona.traffic, 0)) await store.keys.update(key.id, { isActive: false });
  }
  return {
    /** The visitor's. */
    key: visitor.key,
    gpuHostKey: gpuHost.key,
    clients: clients.map(({ persona, key }) => ({ persona, key: key.key })),
    /** The clients, as in the past. */
    keys,
    /** Epoch milliseconds. */
    pastEndsAt: now,
  };
}

/** Continues the past of the clients and of the GPUs. */
export async function simulateActivity(
  { keys, pastEndsAt, clients, gpuHostKey }: Awaited<ReturnType<typeof seed>>,
  { url, adminUrl }: { url: string; adminUrl: string },
  signal: AbortSignal,
): Promise<void> {
  const load = (minute: number): number => loadInMinute(keys, minute);
  const shared = { url, since: pastEndsAt, clock: Date.now, wait, load, signal };
  const nextFault = createFaults(Date.now);
  const running = clients.map(({ persona, key }, index) =>
    runSimulatedClient({ ...shared, key, persona, seed: index, nextFault }),
  );
  const loadNow = (): number => load(minuteOf(Date.now()));
  await Promise.all([...running, runSimulatedGpuAgent(adminUrl, gpuHostKey, loadNow, signal)]);
}

async function createKey(store: Store, name: string, now: number, daysAgo: number): Promise<Key> {
  const createdAt = now - daysAgo * msPerDay;
  const key = await store.keys.create({ name, key: randomBytes(16).toString("hex"), createdAt });
  if (typeof key === "string") throw new Error("A random key already exists");
  return key;
}
