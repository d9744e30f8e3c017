import { expect, test } from "bun:test";
import { requestIdOf } from "../../../src/proxy/gateway.ts";

const idOf = (given: string): string => requestIdOf(new Headers({ "x-request-id": given }));

test("a client's request id is kept if it is at most 128 visible ASCII characters", () => {
  for (const id of ["a", "req-1/2:3", "~".repeat(128)]) expect(idOf(id)).toBe(id);
});

test("any other is replaced by a new one", () => {
  const made = ["", "a b", "é", "~".repeat(129)].map(idOf);
  made.push(requestIdOf(new Headers()));
  for (const id of made) expect(id).toMatch(/^[\da-f-]{36}$/);
  expect(new Set(made).size).toBe(made.length);
});
