import { expect, test } from "bun:test";
import { successesOf } from "./successes.ts";

test("an operation succeeded if one of its exchanges did, whatever the parameters of its path", () => {
  const paths = {
    "/api/keys": { get: {}, post: {}, summary: "" },
    "/api/keys/{id}": { delete: {} },
    "/api/a.b": { get: {} },
  };
  const exchanges = [
    { method: "GET", path: "/api/keys", status: 401 },
    { method: "POST", path: "/api/keys", status: 400 },
    { method: "POST", path: "/api/keys", status: 201 },
    { method: "DELETE", path: "/api/keys/7", status: 200 },
    { method: "GET", path: "/api/axb", status: 200 },
  ];
  const succeeded = successesOf(paths, exchanges).map((one) => [one.operation, one.succeeded]);
  expect(succeeded).toEqual([
    ["GET /api/keys", false],
    ["POST /api/keys", true],
    ["DELETE /api/keys/{id}", true],
    ["GET /api/a.b", false],
  ]);
});
