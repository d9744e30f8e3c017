import { expect, test } from "bun:test";
import { findStoredResponse } from "../../../src/proxy/usage/event-usage.ts";

test.each<[string, unknown, string | undefined]>([
  ["a response", { id: "resp_1", object: "response", usage: {} }, "resp_1"],
  ["an event with a response", { type: "response.completed", response: { id: "resp_1" } }, "resp_1"],
  ["an event with an id of its own", { id: "event_1", response: { id: "resp_1" } }, "resp_1"],
  ["an event whose response has no id", { id: "event_1", response: {} }, undefined],
  ["a response whose reply is null", { id: "resp_1", response: null }, "resp_1"],
  ["an id that is a number", { id: 1 }, undefined],
  ["an empty id", { id: "" }, undefined],
  ["an id of slashes", { id: "//" }, undefined],
  ["an id with slashes, as far as a path shows it", { id: "/job//1/" }, "job"],
  ["an id of 512 characters", { id: "x".repeat(512) }, "x".repeat(512)],
  ["an id of 513 characters", { id: "x".repeat(513) }, undefined],
  ["a list", [{ id: "resp_1" }], undefined],
  ["null", null, undefined],
  ["nothing", undefined, undefined],
])("the response id of %s", (_, document, id) => {
  expect(findStoredResponse(document)?.id).toBe(id);
});

test.each<[unknown, number | undefined]>([
  [1_741_476_542, 1_741_476_542],
  [1_741_476_542.7, 1_741_476_542],
  ["2026-05-02T12:00:00Z", undefined],
  [1e300, undefined],
  [null, undefined],
  [undefined, undefined],
])("the time %p", (createdAt, madeAt) => {
  expect(findStoredResponse({ id: "resp_1", created_at: createdAt })?.madeAt).toBe(madeAt);
  expect(findStoredResponse({ response: { id: "resp_1", created_at: createdAt } })?.madeAt).toBe(madeAt);
});
