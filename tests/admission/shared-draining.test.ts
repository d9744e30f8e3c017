import { expect, test } from "bun:test";
import { shareBackends } from "../../src/admission/shared-draining.ts";
import type { Store } from "../../src/store/store.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";
import { pollUntil } from "../support/poll-until.ts";

const file = (hash: string) => fileCatalog([backendOf("gpu-a")], [], { file: { path: "models.yaml", hash } });

function start(store: Store["backends"], instance: string, catalog = replaceableCatalog(file("one"))) {
  const draining = new Map<string, boolean>();
  const shared = shareBackends({
    store,
    states: { setDraining: (name, isDraining) => void draining.set(name, isDraining) },
    catalog,
    instance,
    clock: () => 1000,
    pollMs: 5,
  });
  return { ...shared, draining };
}

const by = {
  actor: "admin",
  role: "admin",
  address: null,
  action: "backend.update",
  requestId: null,
  changeId: null,
} as const;

onEachEngine(({ openTestStore }) => {
  test("a backend drains in the process that was told at once, then in all others, and after a restart", async () => {
    await using opened = await openTestStore(() => 1000);
    const { backends } = opened.store;
    const [told, other] = [start(backends, "host/1"), start(backends, "host/2")];
    await told.setDraining("gpu-a", true, by);
    expect([...told.draining]).toEqual([["gpu-a", true]]);
    await pollUntil(() => other.draining.get("gpu-a") === true);
    const later = start(backends, "host/3");
    await pollUntil(() => later.draining.get("gpu-a") === true);
    await other.setDraining("gpu-a", false, by);
    expect([...other.draining]).toEqual([["gpu-a", false]]);
    await pollUntil(() => told.draining.get("gpu-a") === false && later.draining.get("gpu-a") === false);
    for (const one of [told, other, later]) await one.close();
  });

  test("a process that starts says what does not drain either: its parent may remember what ended before", async () => {
    await using opened = await openTestStore(() => 1000);
    const shared = start(opened.store.backends, "host/1");
    await shared.known;
    expect([...shared.draining]).toEqual([["gpu-a", false]]);
    await shared.close();
  });

  test("a process says which file it uses, says when it changed, and takes its leave", async () => {
    await using opened = await openTestStore(() => 1000);
    const { backends } = opened.store;
    const catalog = replaceableCatalog(file("one"));
    const shared = start(backends, "host/1", catalog);
    const saysFile = async (hash: string) => (await backends.listFiles())[0]?.fileHash === hash;
    await pollUntil(() => saysFile("one"));
    catalog.replace(file("two"));
    await pollUntil(() => saysFile("two"));
    await shared.close();
    expect(await backends.listFiles()).toEqual([]);
  });
});

test("while the database fails, what is known goes on, and the next poll tries again", async () => {
  let answers = 0;
  const fail = true as boolean;
  const draining: unknown[] = [];
  const shared = shareBackends({
    store: {
      async listDraining() {
        answers++;
        if (answers % 2 === 0 && fail) throw new Error("no database");
        return [{ backend: "gpu-a", since: 1, username: "admin" }];
      },
      drain: () => Promise.reject(new Error("no database")),
      undrain: async () => {},
      usesFile: async () => {},
      forgetInstance: async () => {},
    },
    states: { setDraining: (...args) => void draining.push(args) },
    catalog: replaceableCatalog(file("one")),
    instance: "host/1",
    clock: () => 1000,
    pollMs: 2,
  });
  await pollUntil(() => answers > 4);
  expect(draining).toEqual([["gpu-a", true]]);
  expect(await shared.setDraining("gpu-b", true, by).catch(String)).toContain("no database");
  await shared.close();
});
