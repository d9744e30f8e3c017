import { expect, test } from "bun:test";
import { findCredential } from "../../src/domain/credential.ts";

test.each([
  [{}, undefined],
  [{ authorization: "Bearer abc" }, "abc"],
  [{ authorization: "bEARER   abc " }, "abc"],
  [{ "x-api-key": " abc " }, "abc"],
  [{ "x-api-key": "" }, undefined],
  [{ authorization: "Bearer abc", "x-api-key": "other" }, "abc"],
  [{ authorization: "Basic abc", "x-api-key": "other" }, "other"],
  [{ authorization: "Bearer", "x-api-key": "other" }, "other"],
  [{ authorization: "Bearer a b" }, undefined],
  [{ authorization: "Bearerabc" }, undefined],
])("%j presents %p", (headers: Record<string, string>, key) => {
  expect(findCredential(new Headers(headers))).toBe(key);
});
