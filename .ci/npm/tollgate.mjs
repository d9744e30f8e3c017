#!/usr/bin/env node
// Starts the binary of this platform, which npm installed as an optional dependency.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const isMusl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const name = `@tollgate/${process.platform}-${process.arch}${isMusl ? "-musl" : ""}`;

function findBinary() {
  try {
    return createRequire(import.meta.url).resolve(`${name}/tollgate`);
  } catch {
    process.stderr.write(
      `tollgate: the package ${name} is missing; npm left out optional dependencies, or this platform is not supported\n`,
    );
    return process.exit(1);
  }
}

// A terminal sends Ctrl-C to both, and this passes it on. As under `npm run`, which this variable shows, the program then
// takes both for one; otherwise the second would end its running responses.
const env = { npm_lifecycle_event: "npx", ...process.env };
const child = spawn(findBinary(), process.argv.slice(2), { stdio: "inherit", env });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", ({ message }) => {
  process.stderr.write(`tollgate: ${message}\n`);
  process.exit(1);
});
child.on("exit", (status, signal) => {
  // The loader's own status, after a line for each symbol that it misses.
  if (isMusl && status === 127) process.stderr.write("tollgate: the program needs libstdc++; run: apk add libstdc++\n");
  process.exit(signal ? 128 + constants.signals[signal] : status);
});
