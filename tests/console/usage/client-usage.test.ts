import { expect, test } from "bun:test";
import { classesSentence, groupClients } from "../../../console/src/usage/client-usage.ts";

const row = (client: string | null, requestClass: string | null, input: number) => ({
  client,
  class: requestClass,
  request_count: 1,
  prompt_tokens: input,
  from_cache_tokens: input / 2,
  output_tokens: 1,
});
const rows = [
  row("claude-cli/2.1.332", "main", 600),
  row("claude-cli/2.1.330", "compaction", 310),
  row("codex_exec/0.169.0", null, 90),
  row(null, null, 0),
];

test("rows are grouped by program, version or class, those that say nothing together", () => {
  const names = (by: Parameters<typeof groupClients>[1]) =>
    groupClients(rows, by).map(({ name, prompt_tokens: input }) => [name, input]);
  expect(names("program")).toEqual([
    ["claude-cli", 910],
    ["codex_exec", 90],
    [null, 0],
  ]);
  expect(names("client")).toHaveLength(4);
  expect(names("class")).toEqual([
    ["main", 600],
    ["compaction", 310],
    [null, 90],
  ]);
  expect(groupClients(rows, "program")[0]).toMatchObject({ request_count: 2, from_cache_tokens: 455 });
});

test("a sentence says what share of the input each class took", () => {
  expect(classesSentence(rows)).toBe("main took 60%, compaction took 31% of the input");
  expect(classesSentence(rows.slice(2))).toBeUndefined();
  expect(classesSentence(rows.slice(0, 1))).toBeUndefined();
});
