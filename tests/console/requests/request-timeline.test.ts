import { describe, expect, test } from "bun:test";
import { phasesOf, type RequestTimes } from "../../../console/src/requests/request-timeline.ts";

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
