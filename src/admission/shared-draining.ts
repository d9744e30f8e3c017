import type { Change } from "../domain/changes.ts";
import type { BackendStates } from "../domain/backends.ts";
import type { CurrentCatalog } from "../domain/models.ts";
import type { BackendStore } from "../store/backends/contract.ts";
import type { WallClock } from "../time/clock.ts";
import { repeat } from "../time/wait.ts";

/** A file is said again after so many polls. */
const pollsPerFile = 30;

/**
 * Keeps all processes and instances on one database of one mind: which backends drain, and which file each uses. Polls, since
 * any process or instance may be told that a backend drains; without a file of models it writes nothing.
 */
export function shareBackends(options: {
  store: Pick<BackendStore, "listDraining" | "drain" | "undrain" | "usesFile" | "forgetInstance">;
  states: Pick<BackendStates, "setDraining">;
  catalog: CurrentCatalog;
  /** Names this process among all on the database. */
  instance: string;
  clock: WallClock;
  pollMs?: number;
}) {
  const { store, states, catalog, instance, clock, pollMs = 2000 } = options;
  /** Undefined until it was asked. The parent outlives its children, and may remember a backend that drains no more. */
  let draining: ReadonlySet<string> | undefined;
  let polls = 0;
  let saidFile: string | undefined;

  function apply(names: ReadonlySet<string>): void {
    const before = draining ?? catalog.get().backends.map(({ name }) => name);
    for (const name of before) if (!names.has(name)) states.setDraining(name, false);
    for (const name of names) if (draining?.has(name) !== true) states.setDraining(name, true);
    draining = names;
  }

  async function sayFile(): Promise<void> {
    const fileHash = catalog.get().file?.hash;
    if (fileHash === undefined || (fileHash === saidFile && polls % pollsPerFile !== 0)) return;
    await store.usesFile({ name: instance, fileHash });
    saidFile = fileHash;
  }

  async function poll(): Promise<void> {
    apply(new Set((await store.listDraining()).map(({ backend }) => backend)));
    await sayFile();
    polls++;
  }

  /** If the database fails, what is known goes on. */
  const polling = repeat(pollMs, poll);
  return {
    /** Resolves once it was asked which backends drain, in vain or not. */
    known: polling.run(),
    /** Here at once; everywhere else within seconds. */
    async setDraining(backend: string, isDraining: boolean, by: Change): Promise<void> {
      if (isDraining) await store.drain({ backend, since: clock(), username: by.actor }, by);
      else await store.undrain(backend, by);
      // A poll that began before that has the old list.
      await polling.idle();
      await polling.run();
    },
    async close(): Promise<void> {
      await polling.stop();
      if (saidFile !== undefined) await store.forgetInstance(instance).catch(() => {});
    },
  };
}
