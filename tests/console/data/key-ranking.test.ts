import { expect, test } from "bun:test";
import { type RankedKey, rankKeys } from "../../../console/src/data/key-ranking.ts";
import { minuteMs } from "../../../console/src/data/seoul-time.ts";
import type { KeyHistory, UsageHistory } from "../../../console/src/data/usage-history.ts";

const start = Date.parse("2026-11-21T10:00:00+09:00");
const span = { from: start, to: start + 5 * minuteMs };

/** A key with one bucket at this minute. */
const keyWith = (id: number, output: number, { requests = 1, input = 0, minute = 0 } = {}): KeyHistory => ({
  id,
  name: `key ${id}`,
  starts: [start + minute * minuteMs],
  requests: [requests],
  input: [input],
  output: [output],
});
const historyOf = (...keys: KeyHistory[]): UsageHistory => new Map(keys.map((key) => [key.id, key]));

const idsOf = (ranked: readonly RankedKey[]): number[] => ranked.map(({ key }) => key.id);
const rank = (history: UsageHistory, before: readonly RankedKey[] = []): RankedKey[] =>
  rankKeys(history, "output", span, () => true, before);

test("keys are ordered by their total in the span, highest first", () => {
  const ranked = rank(historyOf(keyWith(1, 5), keyWith(2, 300), keyWith(3, 70)));
  expect(idsOf(ranked)).toEqual([2, 3, 1]);
  expect(ranked.map(({ total }) => total)).toEqual([300, 70, 5]);
});

test("the metric decides the order", () => {
  const history = historyOf(
    keyWith(1, 5, { requests: 9, input: 1 }),
    keyWith(2, 3, { requests: 1, input: 50 }),
    keyWith(3, 4, { requests: 5, input: 9 }),
  );
  const by = (metric: "requests" | "input" | "output" | "total"): number[] =>
    idsOf(rankKeys(history, metric, span, () => true, []));
  expect([by("requests"), by("input"), by("output"), by("total")]).toEqual([
    [1, 3, 2],
    [2, 3, 1],
    [1, 3, 2],
    [2, 3, 1],
  ]);
});

test("keys with equal totals are ordered by id, whatever the order of the history", () => {
  expect(idsOf(rank(historyOf(keyWith(10, 7), keyWith(9, 7), keyWith(2, 7), keyWith(11, 8))))).toEqual([11, 2, 9, 10]);
});

test("a key without tokens stays if it has requests, and comes last", () => {
  const history = historyOf(keyWith(1, 0), keyWith(2, 1), keyWith(3, 0, { requests: 0 }));
  expect(rank(history).map(({ key, total }) => [key.id, total])).toEqual([
    [2, 1],
    [1, 0],
  ]);
});

test("a key without requests in the span is left out", () => {
  expect(
    idsOf(rank(historyOf(keyWith(1, 5, { minute: 5 }), keyWith(2, 1, { minute: 4 }), keyWith(3, 9, { minute: -1 })))),
  ).toEqual([2]);
});

test("only the matching keys are ranked", () => {
  const history = historyOf(keyWith(1, 5), keyWith(2, 6));
  expect(idsOf(rankKeys(history, "output", span, ({ name }) => name === "key 1", []))).toEqual([1]);
});

test("the highest eight get a colour each, and the others are part of Other", () => {
  const ranked = rank(historyOf(...Array.from({ length: 10 }, (_, n) => keyWith(n + 1, n))));
  expect(ranked.map(({ colour }) => colour)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
  expect(idsOf(ranked).slice(-2)).toEqual([2, 1]);
});

test("keys keep their colours when others come above them, and a new one takes what became free", () => {
  const keys = Array.from({ length: 9 }, (_, n) => keyWith(n + 1, 100 - n));
  const before = rank(historyOf(...keys));
  const after = rank(historyOf(...keys.filter(({ id }) => id !== 3), keyWith(2, 500), keyWith(20, 900)), before);
  const colourOf = (ranked: readonly RankedKey[], id: number): number | undefined =>
    ranked.find(({ key }) => key.id === id)?.colour;
  expect(idsOf(after).slice(0, 3)).toEqual([20, 2, 1]);
  expect([1, 2, 4, 8].map((id) => colourOf(after, id))).toEqual([1, 2, 4, 8]);
  expect(colourOf(after, 20)).toBe(colourOf(before, 3));
  expect(colourOf(after, 9)).toBe(0);
});
