import { expect, test } from "bun:test";
import { findHolder } from "../../../src/proxy/request/backend-of-id.ts";
import { backendOf } from "../../support/catalog.ts";
import { passTicks } from "../../support/event-loop.ts";
import { silentLog } from "../../support/local-places.ts";

test("short requests that go on from a response do not wait for each other", async () => {
  const deps = { listCreators: () => [{ keyId: 1, madeAt: 1, backend: "b" }], log: silentLog };
  const asked = { keyId: 1, method: "POST", path: "/v1/responses", references: ["resp_1"], stored: undefined };
  const found: (string | undefined)[] = [];
  for (let count = 0; count < 50; count++) {
    void findHolder(asked, [backendOf("a"), backendOf("b")], deps).then((holder) => found.push(holder?.backend));
  }
  await passTicks();
  expect(found).toEqual(Array.from({ length: 50 }, () => "b"));
});

test("a request that refers to a thousand files lets others have their turns between", async () => {
  let lookUps = 0;
  const deps = { listCreators: () => ((lookUps += 1), []), log: silentLog };
  const references = Array.from({ length: 1000 }, (_, index) => `files/file-${index}`);
  const asked = { keyId: 1, method: "POST", path: "/v1/vector_stores", references, stored: undefined };
  const found = findHolder(asked, [backendOf("a")], deps);
  await passTicks(1);
  expect(lookUps).toBeWithin(1, 500);
  expect(await found).toBeUndefined();
  expect(lookUps).toBe(1000);
});
