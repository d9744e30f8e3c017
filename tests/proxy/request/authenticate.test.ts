import { describe, expect, test } from "bun:test";
import { createLog } from "../../../src/log/log.ts";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { authenticate, type FindKey, limitedSubjects } from "../../../src/proxy/request/authenticate.ts";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { KeyLimits } from "../../../src/domain/keys.ts";

const lines: string[] = [];
const log = createLog({ level: "info", format: "json", clock: () => 0, write: (line) => void lines.push(line) });

const findKnown: FindKey = (key) => (key === "known" ? { id: 7, rules: null } : undefined);

const outcome = (headers: Record<string, string>, findKey: FindKey = findKnown): Promise<unknown> =>
  authenticate(new Headers(headers), { findKey, log }).catch((error: unknown) =>
    error instanceof ProxyError ? error.code : error,
  );

describe("authenticate", () => {
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

test.each([
  ["/v1/messages/count_tokens", null],
  ["/v1/responses/input_tokens", null],
  ["/v1/messages/count_tokens/", 5],
  ["/v1/messages/count%5ftokens", 5],
  ["/v1/messages", 5],
])("a request at %s asks for %p requests per minute", (path, expected) => {
  const limits = { ...noLimits, requests_per_minute: 5, max_concurrency: 2 };
  const asked = (own: KeyLimits) => limitedSubjects({ id: 1, rules: null }, own, path)?.[0]?.limits;
  expect(asked(limits)).toMatchObject({ ...limits, requests_per_minute: expected });
  expect(asked({ ...limits, max_concurrency: null })?.requests_per_minute).toBe(expected ?? undefined);
});
