import { expect, test } from "bun:test";
import { groupSettings, settingSentences, unitOf } from "../../../console/src/operator/setting-groups.ts";
import { reportSettings } from "../../../src/config/settings-report.ts";

const reported = reportSettings({}, () => {
  throw new Error("no file");
});

test("every setting is in a group that says what it is about, and in one alone", () => {
  const grouped = groupSettings(reported);
  expect(grouped.flatMap(({ settings }) => settings.map(({ name }) => name)).toSorted()).toEqual(
    reported.map(({ name }) => name).toSorted(),
  );
  expect(grouped.find(({ title }) => title === "Other")?.settings).toBeUndefined();
  expect(grouped.map(({ title }) => title)).toEqual([
    "Backend",
    "Limits and waiting",
    "Models and rewrites",
    "Listening",
    "Data",
    "Log in",
    "Log and metrics",
  ]);
  expect(groupSettings([{ name: "FROM_THE_FUTURE" }])).toEqual([
    { title: "Other", settings: [{ name: "FROM_THE_FUTURE" }] },
  ]);
});

test.each([
  ["MAX_BODY_BYTES", "67108864", "bytes (64 MiB)"],
  ["PROXY_STREAM_READ_TIMEOUT", "1200", "seconds (20 minutes)"],
  ["PROXY_QUEUE_TIMEOUT", "60", "seconds"],
  ["PROXY_QUEUE_TIMEOUT", "1", "second"],
  ["PROXY_QUEUE_TIMEOUT", "90.5", "seconds"],
  ["SHUTDOWN_GRACE", "7200", "seconds (2 hours)"],
  ["REQUEST_LOG_DAYS", "1", "day"],
  ["REQUEST_LOG_ROWS", "5000000", "rows"],
  ["MAX_OUTPUT_TOKENS", "16384", "tokens"],
  ["PROXY_QUEUE_SIZE", "1000", "requests"],
  ["PORT", "8080", ""],
  ["PROCESSES", "auto", ""],
  ["LOG_LEVEL", "info", ""],
])("the unit of %s=%s is %p", (name, value, unit) => {
  const allowed = reported.find((setting) => setting.name === name)?.allowed ?? "";
  expect(unitOf({ name, value, allowed })).toBe(unit);
});

test("the handbook's table says in a sentence what a setting does, without its links", () => {
  const table =
    "| `PORT` | `8080` | the `port` to listen on |\n| `A_B`  |   | see [Limits](keys.md#x) first   |\n| other | a | b |";
  expect([...settingSentences(table)]).toEqual([
    ["PORT", "the port to listen on"],
    ["A_B", "see Limits first"],
  ]);
});
