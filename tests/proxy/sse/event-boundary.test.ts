import { describe, expect, test } from "bun:test";
import { createEventBoundary, type Position } from "../../../src/proxy/sse/events.ts";
import { cutAtEveryByte } from "../../support/random.ts";

const positions: [stream: string, position: Position][] = [
  ["", "between events"],
  ["data: a\n\n", "between events"],
  ["data: a\r\n\r\n", "between events"],
  ["data: a\r\r", "between events"],
  ["data: a\n\r", "between events"],
  ["data: a\r\r\n", "between events"],
  ["data: a\n\r\n", "between events"],
  ["\n", "between events"],
  ["data: a\n", "between lines"],
  ["data: a\r\n", "between lines"],
  ["data: a\n\nevent: b\n", "between lines"],
  ["data: a", "inside a line"],
  ["data: a\n\nd", "inside a line"],
  // Its LF may still come, and would then end the event.
  ["data: a\r", "inside a line"],
];

describe("event boundary", () => {
  test.each(positions)("the position after %j is %s", (stream, position) => {
    for (const pieces of cutAtEveryByte(new TextEncoder().encode(stream))) {
      const boundary = createEventBoundary();
      for (const piece of pieces) boundary.passed(piece);
      expect(boundary.position()).toBe(position);
    }
  });
});
