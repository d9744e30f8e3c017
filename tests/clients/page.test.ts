import { expect, test } from "bun:test";
import known from "./meetings.json" with { type: "json" };
import { findProblems, type Meeting, mergeMeetings, writePage } from "./page.ts";

const meeting: Meeting = {
  client: "Codex",
  scenario: "401: another key",
  ends: "exit 1",
  calls: 6,
  seconds: 10,
  screen: "ERROR: 401, tried 5 times",
  elsewhere: [],
};

test("a client that ends otherwise, calls more often or shows another sentence is a problem", () => {
  expect(findProblems([{ ...meeting, calls: 7, seconds: 99, screen: "ERROR: 402, tried 9 times" }], [meeting])).toEqual(
    [],
  );
  expect(findProblems([{ ...meeting, ends: "answered", calls: 12, screen: "" }], [meeting])).toHaveLength(3);
});

test("a new run takes the place of the one before", () => {
  expect(mergeMeetings([meeting, { ...meeting, client: "opencode" }], [{ ...meeting, calls: 1 }])).toMatchObject([
    { client: "Codex", calls: 1 },
    { client: "opencode", calls: 6 },
  ]);
});

test("the page is what the runs say", async () => {
  const page = await Bun.file(`${import.meta.dir}/../../.github/CLIENTS.md`).text();
  const squeezed = (text: string): string => text.replaceAll(/ +/g, " ").replaceAll(/-{3,}/g, "---");
  expect(squeezed(page)).toBe(squeezed(writePage(known)));
});
