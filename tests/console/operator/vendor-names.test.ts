import { expect, test } from "bun:test";
import { vendorNamesProblem } from "../../../console/src/operator/vendor-names.ts";

const setting = (name: string, value: string | null) => ({
  name,
  value,
  is_set: value !== null,
  is_secret: false,
  origin: "default" as const,
  allowed: "",
});
const settings = (alias: string | null, prefixes = "anthropic, Claude") => [
  setting("PROXY_ALIAS_MODEL", alias),
  setting("PROXY_VENDOR_PREFIXES", prefixes),
];
const asked = [
  { model: "qwen", request_count: 9 },
  { model: "claude-haiku", request_count: 1 },
  { model: "Claude-Opus", request_count: 1200 },
  { model: null, request_count: 3 },
];

test("names of a vendor's models without an alias are told, the most frequent one first", () => {
  const problem = vendorNamesProblem(settings(null), asked);
  expect(problem).toStartWith("1,201 requests since yesterday asked for Claude-Opus and 1 other name, and");
  expect(problem).toContain("PROXY_ALIAS_MODEL");
  expect(vendorNamesProblem(settings(""), asked.slice(0, 2))).toStartWith(
    "1 request since yesterday asked for claude-haiku, and",
  );
});

test.each([
  ["an alias is set", settings("served"), asked],
  ["a file of models is set", [...settings(null), setting("MODELS_FILE", "/etc/models.yaml")], asked],
  ["no client asks for one", settings(null), asked.slice(0, 1)],
  ["the prefix is another one", settings(null, "gpt,"), asked],
])("nothing is told if %s", (_, given, models) => {
  expect(vendorNamesProblem(given, models)).toBeUndefined();
});
