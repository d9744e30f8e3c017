import { describe, expect, test } from "bun:test";
import { outcomes } from "../../../src/domain/requests.ts";
import { outcomeColour, resultLabel, resultTone } from "../../../console/src/requests/request-format.ts";

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

test("every outcome has a colour of its own, and an unknown one is grey", () => {
  expect(new Set(outcomes.map(outcomeColour)).size).toBe(outcomes.length);
  expect(outcomeColour("from_the_future")).toBe(0);
});
