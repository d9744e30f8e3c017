import { expect, test } from "bun:test";
import type { RunningRequest } from "../../../console/src/requests/queries.ts";
import {
  classesSentence,
  findLowCache,
  groupName,
  groupRunning,
  type GroupRow,
  groupsCsv,
  type RunningGrouping,
} from "../../../console/src/requests/request-groups.ts";

const row = (name: string | null, input: number, cached = 0, more: Partial<GroupRow> = {}): GroupRow => ({
  name,
  id: null,
  request_count: 50,
  prompt_tokens: input,
  from_cache_tokens: cached,
  lost_count: 0,
  output_tokens: 1,
  cost: null,
  cost_is_partial: false,
  ...more,
});

test("a sentence says what share of the input each class took", () => {
  const of = (...classes: [string | null, number][]) =>
    classesSentence({
      classes: classes.map(([name, tokens]) => ({ class: name, prompt_tokens: tokens })),
      total: row(
        null,
        classes.reduce((sum, [, tokens]) => sum + tokens, 0),
      ),
    });
  expect(of(["main", 600], ["compaction", 310], [null, 90])).toBe("main took 60%, compaction took 31% of the input");
  expect(of([null, 90])).toBeUndefined();
  expect(of(["main", 600])).toBeUndefined();
  expect(of(["main", 0], [null, 0])).toBeUndefined();
});

test("a group has a name, and a filter that selects its requests", () => {
  expect(groupName("key", row("first", 1, 0, { id: 7 }))).toEqual({ label: "first", filter: "7" });
  expect(groupName("key", row(null, 1, 0, { id: 7 }))).toEqual({ label: "Deleted key 7", filter: "7" });
  expect(groupName("key", row(null, 1))).toEqual({ label: "No key", filter: undefined });
  expect(groupName("conversation", row(null, 1, 0, { id: 123_456_789 }))).toEqual({
    label: "…456789",
    filter: "123456789",
  });
  expect(groupName("outcome", row("client_left", 1))).toEqual({ label: "Client left", filter: "client_left" });
  expect(groupName("class", row(null, 1))).toEqual({ label: "Not said", filter: undefined });
});

test.each([
  ["less than a fifth", [row("claude-cli", 1_000_000, 199_999)], "claude-cli"],
  ["a fifth", [row("claude-cli", 1_000_000, 200_000)], undefined],
  ["the one that had most read", [row("a", 200_000), row("b", 500_000, 1), row("c", 900_000, 800_000)], "b"],
  ["little of a client without much input", [row("a", 99_999, 1)], undefined],
  ["little of a few requests", [row("a", 1_000_000, 1, { request_count: 9 })], undefined],
  ["little of requests that name no client", [row(null, 1_000_000, 1)], undefined],
])("a client of which too little came from a cache: %s", (_, rows, name) => {
  expect(findLowCache(rows)?.name ?? undefined).toBe(name);
});

test("the CSV has the fields of the API", () => {
  expect(groupsCsv([row("a,b", 2, 1, { cost: 0.5 })])).toBe(
    "name,id,request_count,prompt_tokens,from_cache_tokens,lost_count,output_tokens,cost,cost_is_partial\r\n" +
      '"a,b",,50,2,1,0,1,0.5,false\r\n',
  );
});

test("running requests are grouped by whose they are, most first, and those of nobody are a group too", () => {
  const running = (key: number | null, team: number | null): RunningRequest => {
    const whose = { key_id: key, key_name: key === null ? null : `key ${key}`, team_id: team, team_name: null };
    return whose as Partial<RunningRequest> as RunningRequest;
  };
  const requests = [running(1, null), running(2, 5), running(null, null), running(2, 5)];
  const of = (by: RunningGrouping) =>
    groupRunning(requests, by).map(({ id, name, requests: { length } }) => [id, name, length]);
  expect(of("key")).toEqual([
    [2, "key 2", 2],
    [1, "key 1", 1],
    [null, "No key", 1],
  ]);
  expect(of("team")).toEqual([
    [null, "No team", 2],
    [5, "Team 5", 2],
  ]);
});
