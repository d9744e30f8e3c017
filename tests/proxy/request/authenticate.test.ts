import { describe, expect, test } from "bun:test";
import { createLog } from "../../../src/log/log.ts";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { authenticate, type FindKey } from "../../../src/proxy/request/authenticate.ts";
import { noRules } from "../../../src/store/keys/rules.ts";

const lines: string[] = [];
const log = createLog({ level: "info", format: "json", clock: () => 0, write: (line) => void lines.push(line) });

const findKnown: FindKey = (key) => (key === "known" ? { id: 7, rules: null } : undefined);

const outcome = (headers: Record<string, string>, findKey: FindKey = findKnown): Promise<unknown> =>
  authenticate(new Headers(headers), { findKey, log }).catch((error: unknown) =>
    error instanceof ProxyError ? error.code : error,
  );

describe("authenticate", () => {
  test("accepts a known key, whether storage has it at once or later", async () => {
    expect(await outcome({ authorization: "Bearer known" })).toEqual({ id: 7, rules: null });
    expect(await outcome({ "x-api-key": "known" }, async (key) => findKnown(key))).toEqual({ id: 7, rules: null });
  });

  test("refuses a key that is only for GPU samples", async () => {
    const findGpuKey: FindKey = () => ({ id: 7, rules: { ...noRules, scope: "gpu" } });
    expect(await outcome({ "x-api-key": "known" }, findGpuKey)).toBe("scope_not_allowed");
  });

  test("refuses a missing key and an unknown one alike", async () => {
    expect(await outcome({})).toBe("invalid_api_key");
    expect(await outcome({ "x-api-key": "unknown" })).toBe("invalid_api_key");
  });

  test.each<[string, FindKey]>([
    [
      "at once",
      () => {
        throw new Error("the disk is gone");
      },
    ],
    [
      "later",
      async () => {
        throw new Error("the disk is gone");
      },
    ],
  ])(
    "refuses with an error of its own if storage fails %s, and logs the reason without the key",
    async (_, findKey) => {
      lines.length = 0;
      expect(await outcome({ "x-api-key": "known" }, findKey)).toBe("storage_unavailable");
      expect(lines.join("")).toContain("the disk is gone");
      expect(lines.join("")).not.toContain("known");
    },
  );
});
