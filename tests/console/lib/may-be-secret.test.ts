import { expect, test } from "bun:test";
import { mayBeSecret } from "../../../console/src/lib/may-be-secret.ts";

test.each([
  ["3f2a9c1b3f2a9c1b3f2a9c1b3f2a9c1b", true],
  ["3f2a9c1b3f2a", true],
  ["3f2a9c1b3f2", false],
  ["sk-proj-abcdefghijkl", true],
  ["Bearer sk-proj-abcdefghijkl", true],
  ["sk-proj-abcdefg", false],
  ["kim@research.example", false],
  ["gpt-4.1-mini-2025-04-14", false],
  ["nightly batch of team red", false],
  ["", false],
])("%j may be a secret: %p", (text, isSecret) => {
  expect(mayBeSecret(text)).toBe(isSecret);
});
