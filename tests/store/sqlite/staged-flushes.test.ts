import { expect, test } from "bun:test";
import { createFold, prepareStage } from "../../../src/store/sqlite/staged-flushes.ts";
import { createKeys, openTestEngine, usageIncrement } from "../test-store.ts";

test.each([
  ["with its first time", false],
  ["after its first time was folded", true],
])("a flush that is staged again %s counts once", async (_, isFoldedBetween) => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  const [keyId = 0] = await createKeys(store, ["a"]);
  const stage = prepareStage(engine);
  const { fold } = createFold(engine, Date.now);
  const increments = [usageIncrement({ keyId, minute: 1000, requestCount: 3 })];
  const stageOnce = () =>
    stage({ ledger: "test", number: 1 }, { increments, requests: { rows: [], amendments: [] }, settled: [] });
  await stageOnce();
  if (isFoldedBetween) await fold();
  await stageOnce();
  await fold();
  expect((await store.usage.sumOfKeys()).requestCount).toBe(3);
});
