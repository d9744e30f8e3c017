import { describe, expect, test } from "bun:test";
import { requestFilterQuery, requestTimeQuery } from "../../../console/src/requests/request-filters.ts";

describe("the filters of the request log", () => {
  test("become parameters of the API", () => {
    expect(
      requestFilterQuery({ key: "3", model: " m1 ", path: "/v1/x", address: "::1", id: "r-1", slower: "1500" }),
    ).toEqual({ key_id: 3, model: "m1", path: "/v1/x", address: "::1", request_id: "r-1", min_duration_ms: 1500 });
  });

  test.each([
    ["failed", { failed: "true" }],
    ["without_usage", { without_usage: "true" }],
    ["5xx", { status: "5xx" }],
    ["404", { status: "404" }],
    ["client_left", { outcome: "client_left" }],
  ] as const)("select the result %s", (result, query) => {
    expect(requestFilterQuery({ result })).toEqual(query);
  });

  test.each([
    { key: "abc" },
    { key: "-1" },
    { key: "1.5" },
    { result: "9xx" },
    { result: "<script>" },
    { slower: "soon" },
    { model: "  " },
    {},
  ])("leave out what the API would refuse: %p", (parameters) => {
    expect(requestFilterQuery(parameters)).toEqual({});
  });

  test("cut a text that is longer than the API takes", () => {
    expect(requestFilterQuery({ model: "m".repeat(1000) }).model).toHaveLength(512);
  });

  test("send times with their offset, and leave out those that are not times", () => {
    expect(requestTimeQuery({ since: "2026-11-21T13:00", until: "yesterday" })).toEqual({
      since: "2026-11-21T13:00:00.000+09:00",
    });
  });
});
