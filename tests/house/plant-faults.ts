/**
 * `bun tests/house/plant-faults.ts [TEXT]`: plants each fault in a copy of the last commit, one after the other, and runs the tests that
 * should catch it. Takes ten minutes; with a text, only faults whose id has it. Exits with 1 if one is not caught.
 */
import { cpSync, existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../support/import-table.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { type PlantedFault, plantedFaults } from "./planted-faults.ts";

const print = (text: string): void => void process.stdout.write(`${text}\n`);

const chosen = plantedFaults.filter(({ id }) => id.includes(process.argv[2] ?? ""));

/** A worktree without what git does not have, but with its packages and the console's build. */
function copyRepository(folder: string): void {
  const added = Bun.spawnSync(["git", "worktree", "add", "--detach", folder, "HEAD"], { cwd: repositoryRoot });
  if (!added.success) throw new Error(added.stderr.toString());
  symlinkSync(join(repositoryRoot, "node_modules"), join(folder, "node_modules"));
  const built = "console/dist";
  if (existsSync(join(repositoryRoot, built)))
    cpSync(join(repositoryRoot, built), join(folder, built), { recursive: true });
}

/** @throws Error if not one file has the text once, or what becomes of it is no program */
async function plant(folder: string, { id, find, put }: PlantedFault): Promise<() => Promise<unknown>> {
  const files = [...new Bun.Glob("src/**/*.ts").scanSync(folder)].map((file) => join(folder, file));
  const texts = await Promise.all(files.map(async (file) => [file, await Bun.file(file).text()] as const));
  const [found, ...others] = texts.filter(([, text]) => text.includes(find));
  if (found === undefined || others.length > 0) throw new Error(`${id}: not one file has its text`);
  const [file, text] = found;
  if (text.indexOf(find) !== text.lastIndexOf(find)) throw new Error(`${id}: ${file} has its text twice`);
  const planted = text.replace(find, () => put);
  // It looks for macros beside itself.
  new Bun.Transpiler({ loader: "ts" }).transformSync(planted.replaceAll('with { type: "macro" }', ""));
  await Bun.write(file, planted);
  return () => Bun.write(file, text);
}

/** @returns the name of the first test that fails; undefined if all pass */
function firstFailure(folder: string, tests: readonly string[]): string | undefined {
  const { success, stdout, stderr } = Bun.spawnSync(["bun", "test", "--timeout", "180000", "--bail", ...tests], {
    cwd: folder,
    timeout: 300_000,
  });
  if (success) return undefined;
  const output = `${stdout.toString()}${stderr.toString()}`;
  return /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(output)?.[1] ?? `no test, but: ${output.slice(-300)}`;
}

using folder = createTempFolder();
const copy = folder.file("copy");
copyRepository(copy);
let missed = 0;
try {
  const before = firstFailure(copy, [...new Set(chosen.flatMap(({ tests }) => tests))]);
  if (before !== undefined) throw new Error(`Without a fault: ${before}`);
  for (const fault of chosen) {
    const undo = await plant(copy, fault);
    const caught = firstFailure(copy, fault.tests);
    await undo();
    if (caught === undefined) missed += 1;
    print(`${caught === undefined ? "NOT CAUGHT" : "caught"}  ${fault.id}: ${fault.says}\n    ${caught ?? ""}`);
  }
} finally {
  Bun.spawnSync(["git", "worktree", "remove", "--force", copy], { cwd: repositoryRoot });
}
print(`${chosen.length} faults, ${missed} not caught`);
process.exitCode = missed > 0 ? 1 : 0;
