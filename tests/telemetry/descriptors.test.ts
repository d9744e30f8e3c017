import { expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { countOpenDescriptors, createDescriptorLog, findDescriptorLimit } from "../../src/telemetry/descriptors.ts";
import { memoryLog } from "../store/test-store.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";

test("open descriptors are counted, and the limit is that of the process", () => {
  const limit = findDescriptorLimit() ?? NaN;
  const before = countOpenDescriptors(limit);
  const descriptor = openSync("/dev/null", "r");
  expect(countOpenDescriptors(limit)).toBe(before + 1);
  closeSync(descriptor);
  expect(limit).toBe(Number(Bun.spawnSync(["sh", "-c", "ulimit -n"]).stdout.toString()));
});

test("running out of descriptors is logged once in ten seconds while it lasts", () => {
  const { entries, log } = memoryLog();
  let now = 0;
  const { finished } = createDescriptorLog(log, () => now);
  const fail = (cause: string | undefined): void => finished({ cause } as RequestRecord);
  for (const cause of [undefined, "ECONNREFUSED", "EMFILE", "EMFILE", "ENFILE"]) fail(cause);
  expect(entries).toMatchObject([{ level: "error", cause: "EMFILE", limit: findDescriptorLimit() }]);
  now = 9_999;
  fail("ENFILE");
  expect(entries).toHaveLength(1);
  now = 10_000;
  fail("ENFILE");
  expect(entries).toMatchObject([{ cause: "EMFILE" }, { cause: "ENFILE" }]);
});
