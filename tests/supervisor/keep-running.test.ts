import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { createLog } from "../../src/log/log.ts";
import { keepRunning } from "../../src/supervisor/supervisor.ts";

interface Started {
  pid: number;
  leaving: Promise<number | undefined>;
  leave: (status: number | undefined) => void;
}

let started: Started[];
let lines: Record<string, unknown>[];
let ending: AbortController;
let kept: Promise<void>;

function start(): Started {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const child = { pid: 100 + started.length, leaving: promise, leave: resolve };
  started.push(child);
  return child;
}

beforeEach(() => {
  jest.useFakeTimers();
  [started, lines, ending] = [[], [], new AbortController()];
  const write = (line: string): void => void lines.push(JSON.parse(line));
  const log = createLog({ level: "info", format: "json", clock: () => 0, write });
  kept = keepRunning(start(), start, { log, signal: ending.signal });
});
afterEach(async () => {
  ending.abort();
  started.at(-1)?.leave(0);
  await kept;
  jest.useRealTimers();
});

/** Lets what waits for a promise continue. */
async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await Promise.resolve();
}

/** Ends the running process after some time. @returns how long its replacement waits */
async function leaveAfter(ranMs: number, status: number | undefined): Promise<number> {
  jest.advanceTimersByTime(ranMs);
  started.at(-1)?.leave(status);
  await settle();
  const inMs = Number(lines.at(-1)?.["inMs"]);
  const before = started.length;
  jest.advanceTimersByTime(inMs - 1);
  await settle();
  expect(started).toHaveLength(before);
  jest.advanceTimersByTime(1);
  await settle();
  expect(started).toHaveLength(before + 1);
  return inMs;
}

test("waits twice as long for each replacement of a short-lived process, up to ten seconds", async () => {
  for (const fullMs of [400, 800, 1600, 3200, 6400, 10_000, 10_000]) {
    expect(await leaveAfter(50, 1)).toBeWithin(fullMs / 2, fullMs + 1);
  }
});

test("starts with the shortest wait again after a process ran for more than ten seconds", async () => {
  for (let time = 0; time < 4; time++) await leaveAfter(50, 1);
  expect(await leaveAfter(10_001, 1)).toBeWithin(200, 401);
  expect(await leaveAfter(10_000, 1)).toBeWithin(400, 801);
});

test("starts no replacement once it is stopped, also while it waits to start one", async () => {
  started[0]?.leave(1);
  await settle();
  ending.abort();
  await kept;
  expect(started).toHaveLength(1);
});

test("does not report a process that leaves after the stop", async () => {
  ending.abort();
  started[0]?.leave(0);
  await kept;
  expect(lines).toEqual([]);
});
