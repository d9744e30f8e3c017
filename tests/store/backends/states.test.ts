import { expect, test } from "bun:test";
import { onEachEngine } from "../each-engine.ts";

onEachEngine(({ openTestEngine }) => {
  test("a notice tells of no state whose process was killed before it", async () => {
    await using opened = await openTestEngine(() => 100_000);
    const { db, tables } = opened.engine;
    const { states, notices } = opened.store;
    const row = {
      kind: "disk",
      object: "",
      since: 1,
      until: null,
      what: "1 GB free",
      count: null,
      silencedUntil: null,
      silencedWhy: null,
      silencedBy: null,
      told: 0,
    };
    await states.save([{ ...row, process: "killed" }]);
    await db.update(tables.states).set({ seenAt: 0 });
    await states.save([{ ...row, process: "lives" }]);
    await notices.add({ id: "msg_1", kind: "disk", body: "{}" }, 50_000);
    const told = (await states.list()).map((one) => `${one.process} ${one.told}`);
    expect(told.toSorted()).toEqual(["killed 0", "lives 1"]);
  });
});
