import { expect, test } from "bun:test";
import { createLog } from "../../../src/log/log.ts";
import type { Creator } from "../../../src/domain/usage-event.ts";
import { findResponseId, findAskedResponse } from "../../../src/proxy/request/stored-response.ts";

test.each<[string, string, string | undefined]>([
  ["GET", "/v1/responses/resp_1", "resp_1"],
  ["HEAD", "/v1/responses/resp_1", "resp_1"],
  ["DELETE", "/v1/responses/resp_1", "resp_1"],
  ["GET", "/v1/responses/resp_1/", "resp_1"],
  ["GET", "/v1//responses///resp_1", "resp_1"],
  ["GET", "/v1/%72esponses/%72esp_1", "resp_1"],
  ["GET", "/v1/responses%2Fresp_1", "resp_1"],
  ["GET", "/v1/responses/resp_1/input_items", "resp_1"],
  ["POST", "/v1/responses/resp_1/cancel", "resp_1"],
  ["POST", "/v1/responses/resp_1%2Fcancel", "resp_1"],
  ["GET", "/v1/responses/%zz", "%zz"],
  ["GET", "/v1/responses", undefined],
  ["POST", "/v1/responses", undefined],
  ["POST", "/v1/responses/", undefined],
  ["POST", "/v1/responses/compact", undefined],
  ["GET", "/v1/responses2/resp_1", undefined],
  ["GET", "/v1/chat/completions/chat_1", undefined],
])("%s %s is for the stored response %p", (method, path, id) => {
  expect(findResponseId(method, path)).toBe(id);
});

const entries: string[] = [];
const log = createLog({ level: "debug", format: "json", clock: () => 0, write: (line) => void entries.push(line) });

async function outcomeFor(creators: readonly Creator[], method = "GET"): Promise<unknown> {
  const found = findAskedResponse(
    "/v1/responses/resp_1/cancel",
    { keyId: 1, method },
    { listCreators: () => creators, log },
  );
  return found.then(
    (own) => (own?.madeAt === undefined ? "any" : own.madeAt),
    ({ code }: { code: unknown }) => code,
  );
}

test.each<[string, Creator[], reading: unknown, deleting: unknown]>([
  ["nobody", [], "any", "any"],
  ["the key", [{ keyId: 1, madeAt: 5 }], "any", "any"],
  ["another key", [{ keyId: 2, madeAt: 5 }], "not_found", "not_found"],
  [
    "both at different times",
    [
      { keyId: 2, madeAt: 5 },
      { keyId: 1, madeAt: 6 },
    ],
    6,
    "not_found",
  ],
  [
    "both in one second",
    [
      { keyId: 2, madeAt: 5 },
      { keyId: 1, madeAt: 5 },
    ],
    "any",
    "any",
  ],
  ["three, two of them in one second", [1, 2, 3].map((keyId) => ({ keyId, madeAt: keyId % 2 })), 1, "not_found"],
  [
    "three, the others in one second",
    [1, 2, 3].map((keyId) => ({ keyId, madeAt: keyId === 1 ? 4 : 5 })),
    4,
    "not_found",
  ],
  [
    "both without times",
    [
      { keyId: 2, madeAt: null },
      { keyId: 1, madeAt: null },
    ],
    "any",
    "any",
  ],
  [
    "both, the other without a time",
    [
      { keyId: 2, madeAt: null },
      { keyId: 1, madeAt: 6 },
    ],
    6,
    "not_found",
  ],
  [
    "both, the key without a time",
    [
      { keyId: 2, madeAt: 5 },
      { keyId: 1, madeAt: null },
    ],
    "not_found",
    "not_found",
  ],
])("a key that asks for a response that was created by %s", async (_, creators, reading, deleting) => {
  expect([await outcomeFor(creators), await outcomeFor(creators, "DELETE")]).toEqual([reading, deleting]);
  expect([await outcomeFor(creators, "POST"), await outcomeFor(creators, "HEAD")]).toEqual([deleting, deleting]);
});

test("a response whose creators cannot be looked up is not shown, and the log tells why", async () => {
  const listCreators = async () => {
    throw new Error("the disk is on fire");
  };
  const found = findAskedResponse("/v1/responses/resp_1", { keyId: 1, method: "GET" }, { listCreators, log });
  expect(await found.catch(({ code }: { code: unknown }) => code)).toBe("storage_unavailable");
  expect(entries.join()).toContain("the disk is on fire");
});
