import { expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createChangeDetector, stateOfFiles } from "../../src/runtime/changed-files.ts";
import { createTempFolder } from "../support/temp-folder.ts";

test("a change of files is told once, when two looks in a row saw the same", () => {
  using folder = createTempFolder();
  const [one, other] = [folder.file("one"), folder.file("other")];
  writeFileSync(one, "1");
  const hasChanged = createChangeDetector([one, other], stateOfFiles([one, other]));
  expect([hasChanged(), hasChanged()]).toEqual([false, false]);
  writeFileSync(one, "12");
  expect(hasChanged()).toBeFalse();
  writeFileSync(one, "123");
  expect([hasChanged(), hasChanged(), hasChanged()]).toEqual([false, true, false]);
  writeFileSync(other, "123");
  renameSync(other, one);
  expect([hasChanged(), hasChanged(), hasChanged()]).toEqual([false, true, false]);
  rmSync(one);
  expect([hasChanged(), hasChanged(), hasChanged()]).toEqual([false, true, false]);
});

test("a folder that can no longer be entered is a change like any other", () => {
  using folder = createTempFolder();
  mkdirSync(folder.file("folder"));
  const file = folder.file("folder/one");
  writeFileSync(file, "1");
  const hasChanged = createChangeDetector([file], stateOfFiles([file]));
  renameSync(folder.file("folder"), folder.file("elsewhere"));
  symlinkSync("folder", folder.file("folder"));
  expect([hasChanged(), hasChanged(), hasChanged()]).toEqual([false, true, false]);
  rmSync(folder.file("folder"));
  renameSync(folder.file("elsewhere"), folder.file("folder"));
  expect([hasChanged(), hasChanged(), hasChanged()]).toEqual([false, true, false]);
});

test("a change before the first look is told at the second", () => {
  using folder = createTempFolder();
  const file = folder.file("one");
  const hasChanged = createChangeDetector([file], stateOfFiles([file]));
  writeFileSync(file, "1");
  expect([hasChanged(), hasChanged()]).toEqual([false, true]);
});
