import { describe, expect, test } from "bun:test";
import { byteSize, milliseconds, resultLabel, resultTone } from "../../../console/src/requests/request-format.ts";

test.each([
  [0, "0 ms"],
  [0.4, "< 1 ms"],
  [7.4, "7 ms"],
  [999.4, "999 ms"],
  [999.6, "1 s"],
  [1234, "1.23 s"],
  [59_994, "60 s"],
  [59_996, "1 min 0 s"],
  [125_000, "2 min 5 s"],
])("%d milliseconds are %s", (ms, text) => {
  expect(milliseconds(ms)).toBe(text);
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1 KiB"],
  [1_300_000, "1.24 MiB"],
  [2 ** 50, "1,020 TiB"],
])("%d bytes are %s", (bytes, text) => {
  expect(byteSize(bytes)).toBe(text);
});

describe("the result of a request", () => {
  const result = { status: 200, outcome: "completed", code: null, cause: null };
  test.each([
    [result, "200", "good"],
    [{ ...result, status: 429 }, "429", "warn"],
    [{ ...result, status: 401, outcome: "refused", code: "invalid_api_key" }, "401 invalid_api_key", "warn"],
    [{ ...result, outcome: "client_left" }, "200 Client left", "warn"],
    [{ ...result, status: 502, outcome: "upstream_failed", cause: "ECONNREFUSED" }, "502 ECONNREFUSED", "bad"],
    [{ ...result, outcome: "upstream_failed" }, "200 Backend failed", "bad"],
    [{ ...result, outcome: "from_the_future" }, "200 from_the_future", "warn"],
  ] as const)("of %p is %s, %s", (request, label, tone) => {
    expect(resultLabel(request)).toBe(label);
    expect(resultTone(request)).toBe(tone);
  });
});
