import { describe, expect, test } from "bun:test";
import { outputSpeed, phasesOf, type RequestTimes } from "../../../console/src/requests/request-timeline.ts";

const times = (fields: Partial<RequestTimes>): RequestTimes => ({
  queue_ms: null,
  upstream_ms: null,
  first_byte_ms: null,
  duration_ms: 100,
  ...fields,
});
const spans = (fields: Partial<RequestTimes>): [number, number][] =>
  phasesOf(times(fields)).map(({ fromMs, toMs }) => [fromMs, toMs]);

describe("the phases of a request", () => {
  test("follow each other without gaps and end with the request", () => {
    expect(spans({ queue_ms: 5, upstream_ms: 40, first_byte_ms: 46 })).toEqual([
      [0, 5],
      [5, 45],
      [45, 46],
      [46, 100],
    ]);
  });

  test("of a refused request are one", () => {
    expect(spans({})).toEqual([[0, 100]]);
  });

  test("end with the backend if it never responded", () => {
    expect(spans({ queue_ms: 5 })).toEqual([
      [0, 5],
      [5, 100],
    ]);
  });

  test("never run backwards or beyond the end, although the times are rounded", () => {
    expect(spans({ queue_ms: 5, upstream_ms: 0.4, first_byte_ms: 5 })).toEqual([
      [0, 5],
      [5, 5.4],
      [5.4, 5.4],
      [5.4, 100],
    ]);
    expect(spans({ queue_ms: 50, upstream_ms: 60, first_byte_ms: 120 })).toEqual([
      [0, 50],
      [50, 100],
      [100, 100],
      [100, 100],
    ]);
  });
});

describe("the output speed", () => {
  const request = { ...times({ first_byte_ms: 50, duration_ms: 1050 }), output_tokens: 101, streamed: true };

  test("counts the tokens after the first byte", () => {
    expect(outputSpeed(request)).toBe(100);
  });

  test.each([
    ["a response that was not streamed", { streamed: false }],
    ["unknown tokens", { output_tokens: null }],
    ["one token", { output_tokens: 1 }],
    ["a response without bytes", { first_byte_ms: null }],
    ["a response that took no time", { duration_ms: 50 }],
  ])("is unknown for %s", (_, fields) => {
    expect(outputSpeed({ ...request, ...fields })).toBeUndefined();
  });
});
