import { expect, test } from "bun:test";
import { listedMs } from "../../../src/store/backends/backends.ts";
import { onEachEngine } from "../each-engine.ts";

onEachEngine(({ openTestStore }) => {
  test("a backend drains until it is told not to, since when it was told first", async () => {
    await using opened = await openTestStore(() => 1000);
    const { backends } = opened.store;
    const draining = { backend: "gpu-b", since: 5, username: "admin" };
    await backends.drain(draining);
    await backends.drain({ ...draining, since: 7, username: "other" });
    await backends.drain({ ...draining, backend: "gpu-a" });
    expect(await backends.listDraining()).toEqual([{ ...draining, backend: "gpu-a" }, draining]);
    await backends.undrain("gpu-b");
    await backends.undrain("gpu-b");
    expect(await backends.listDraining()).toEqual([{ ...draining, backend: "gpu-a" }]);
  });

  test("processes are listed with the file that they said last, until they say nothing for minutes", async () => {
    let now = 10_000;
    await using opened = await openTestStore(() => now);
    const { backends } = opened.store;
    await backends.usesFile({ name: "host-b/1", fileHash: "old" });
    await backends.usesFile({ name: "host-a/2", fileHash: "new" });
    now += listedMs - 1;
    await backends.usesFile({ name: "host-a/2", fileHash: "newer" });
    expect(await backends.listFiles()).toEqual([
      { name: "host-a/2", fileHash: "newer" },
      { name: "host-b/1", fileHash: "old" },
    ]);
    now += 1;
    expect(await backends.listFiles()).toEqual([{ name: "host-a/2", fileHash: "newer" }]);
    await backends.forgetInstance("host-a/2");
    expect(await backends.listFiles()).toEqual([]);
  });
});
