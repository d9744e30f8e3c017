import { expect, test } from "bun:test";
import { createLog } from "../../src/log/log.ts";
import { createLogOnChange } from "../../src/gpu-agent/log-on-change.ts";

test("a state is logged when it differs from the one before", () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", format: "pretty", clock: () => 0, write: (line) => lines.push(line.trim()) });
  const say = createLogOnChange(log);
  say("info", "well");
  say("warn", "ill");
  say("warn", "ill");
  say("info", "well");
  expect(lines.map((line) => line.split(" ").slice(1).join(" ").trim())).toEqual([
    "INFO  well",
    "WARN  ill",
    "INFO  well",
  ]);
});
