import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { createTempFolder } from "./temp-folder.ts";

test("a folder exists inside its scope and is removed with its contents afterwards", () => {
  let path: string;
  {
    using folder = createTempFolder();
    ({ path } = folder);
    writeFileSync(folder.file("a"), "1");
    expect(existsSync(path)).toBe(true);
  }
  expect(existsSync(path)).toBe(false);
});

test("a folder is removed with its process at the latest", () => {
  const module = JSON.stringify(`${import.meta.dir}/temp-folder.ts`);
  const script = `const { createTempFolder } = await import(${module}); console.log(createTempFolder().path)`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script]);
  const path = stdout.toString().trim();
  expect(path).toContain("tollgate-test-");
  expect(existsSync(path)).toBe(false);
});
