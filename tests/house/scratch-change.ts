import { symlinkSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../support/import-table.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** A member that a change adds to an interface or a list of the program. */
export interface NewMember {
  /** Opens the interface or the list. */
  head: string;
  member: string;
}

export const newUsageCounter: NewMember = { head: "export const usageParts = [", member: '"scratchTokens", ' };
export const newRequestField: NewMember = {
  head: "const requestFields = [\n",
  member: '  { field: "scratch", kind: "text", nullable: true },\n',
};
/** It counts in a window of its own: one in a window that another kind has changes the table alone. */
export const newLimitKind: NewMember = {
  head: "export const limitKinds = {\n",
  member: '  scratch_per_year: { counts: "tokens", window: "year", maximum: 1, unit: "", description: "" },\n',
};
/** Of the new limit kind. */
export const newWindow: NewMember = { head: 'export const windows = ["now", ', member: '"year", ' };

/**
 * Adds the members in a copy of the program.
 * @returns the files that the type check then names, and those that have the interfaces or lists
 * @throws Error if not one file has one of them
 */
export async function listFilesToChange(members: readonly NewMember[]): Promise<string[]> {
  using folder = createTempFolder();
  for (const name of ["src", "console/src"]) {
    await cp(join(repositoryRoot, name), folder.file(name), { recursive: true });
  }
  for (const name of ["node_modules", "package.json"]) symlinkSync(join(repositoryRoot, name), folder.file(name));
  const settings = await Bun.file(join(repositoryRoot, "tsconfig.json")).text();
  await Bun.write(folder.file("tsconfig.json"), settings.replace(/"include": .*/, '"include": ["src", "console/src"]'));

  const files = await Promise.all(members.map((one) => addMember(folder.path, one)));
  return [...new Set([...files, ...(await listFilesWithErrors(folder.path))])].toSorted();
}

/** @returns the file that declares it */
async function addMember(folder: string, { head, member }: NewMember): Promise<string> {
  const texts = [...new Bun.Glob("src/**/*.ts").scanSync(folder)].map(
    async (file) => [file, await Bun.file(join(folder, file)).text()] as const,
  );
  const [declaring, ...others] = (await Promise.all(texts)).filter(([, text]) => text.includes(head));
  if (declaring === undefined || others.length > 0) throw new Error(`Not one file has ${head}`);
  const [file, text] = declaring;
  await Bun.write(join(folder, file), text.replace(head, head + member));
  return file;
}

/** @throws Error if the type check finds nothing */
async function listFilesWithErrors(folder: string): Promise<string[]> {
  const check = Bun.spawn([process.execPath, "check", "--no-script", "--no-pretty", "--all"], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
  });
  const output = (await Promise.all([check.stdout, check.stderr].map((pipe) => new Response(pipe).text()))).join("");
  const files = [...output.matchAll(/^(\S+?)\(\d+,\d+\): error TS/gm)].map(([, file = ""]) => file);
  if (files.length === 0) throw new Error(`The type check names no file: ${output}`);
  return files;
}
