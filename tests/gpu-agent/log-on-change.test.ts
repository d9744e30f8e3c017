import { expect, test } from "bun:test";
import { createLogOnChange } from "../../src/gpu-agent/log-on-change.ts";
import { createLog } from "../../src/log/log.ts";

test("logs a state only if it differs from the previous one", () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", format: "pretty", clock: () => 0, write: (line) => lines.push(line.trim()) });
  const logOnChange = createLogOnChange(log);
  logOnChange("info", "Working", { gpus: 1 });
  logOnChange("warn", "Failing", {});
  logOnChange("warn", "Failing", {});
  logOnChange("info", "Working", { gpus: 1 });
  logOnChange("info", "Working", { gpus: 2 });
  expect(lines.map((line) => line.split(" ").slice(1).join(" ").trim())).toEqual([
    "INFO  Working gpus=1",
    "WARN  Failing",
    "INFO  Working gpus=1",
    "INFO  Working gpus=2",
  ]);
});
