import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createTempFolder } from "../support/temp-folder.ts";

const launcher = join(import.meta.dir, "../../.ci/npm/tollgate.mjs");
const asMusl = "process.report.getReport = () => ({ header: {} });";
const hint = "tollgate: the program needs libstdc++; run: apk add libstdc++\n";

test.skipIf(process.platform !== "linux").each([
  ["musl, and a library is missing", "-musl", 127, hint],
  ["musl, and it fails", "-musl", 1, ""],
  ["glibc, and a library is missing", "", 127, ""],
])("where the C library is %s, the npm package says what to install, or nothing", (_, suffix, status, expected) => {
  using folder = createTempFolder();
  const name = `@tollgate/linux-${process.arch}${suffix}`;
  const packageFolder = folder.file(`node_modules/${name}`);
  mkdirSync(packageFolder, { recursive: true });
  writeFileSync(join(packageFolder, "package.json"), JSON.stringify({ name, version: "1.0.0" }));
  writeFileSync(join(packageFolder, "tollgate"), `#!/bin/sh\nexit ${status}\n`);
  chmodSync(join(packageFolder, "tollgate"), 0o755);
  copyFileSync(launcher, folder.file("tollgate.mjs"));
  writeFileSync(folder.file("libc.mjs"), suffix === "" ? "" : asMusl);
  const command = ["node", "--import", folder.file("libc.mjs"), folder.file("tollgate.mjs")];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: folder.path });
  expect({ status: exitCode, stderr: stderr.toString() }).toEqual({ status, stderr: expected });
});
