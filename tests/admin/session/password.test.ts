import { expect, test } from "bun:test";
import { generatePassword, hashPassword, verifyPassword } from "../../../src/admin/session/password.ts";

test("a hash is argon2id with its own salt, and matches only its password", async () => {
  const [hash, other] = [await hashPassword("pässword"), await hashPassword("pässword")];
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
  expect(hash).not.toBe(other);
  expect(await verifyPassword("pässword", hash)).toBe(true);
  expect(await verifyPassword("password", hash)).toBe(false);
});

test.each(["", "not a hash", "$argon2id$v=19$m=19456,t=2,p=1$"])(
  "no password matches the invalid hash %p",
  async (hash) => {
    for (const password of ["", "x", hash]) expect(await verifyPassword(password, hash)).toBe(false);
  },
);

test("verification does not block the event loop", async () => {
  const hash = await hashPassword("x");
  const done = new AbortController();
  const verifying = verifyPassword("x", hash).finally(() => done.abort());
  let ticks = 0;
  while (!done.signal.aborted) {
    await new Promise(setImmediate);
    ticks += 1;
  }
  expect(await verifying).toBe(true);
  // On the main thread there would be one or two, on any machine.
  expect(ticks).toBeGreaterThan(10);
});

test("generated passwords differ, and have 20 characters that are hard to confuse", () => {
  const passwords = Array.from({ length: 500 }, generatePassword);
  for (const password of passwords) expect(password).toMatch(/^[a-km-np-z2-9]{5}(-[a-km-np-z2-9]{5}){3}$/);
  expect(new Set(passwords).size).toBe(500);
  expect(new Set(passwords.join("").replaceAll("-", "")).size).toBe(32);
});
