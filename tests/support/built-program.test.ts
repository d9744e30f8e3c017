import { expect, test } from "bun:test";
import { $ } from "bun";
import { join } from "node:path";
import { programFiles } from "./built-program.ts";

test("the program is built again after a change of any file that is in it", async () => {
  const tracked = await $`git ls-files src drizzle package.json bun.lock .ci/build`
    .cwd(join(import.meta.dir, "../.."))
    .text();
  const expected = tracked.trim().split("\n");
  expect(expected.length).toBeGreaterThan(100);
  expect(programFiles()).toEqual(expect.arrayContaining(expected));
});
