import { existsSync } from "node:fs";
import { join } from "node:path";

export const portkeyVersion = "1.15.2";

/** @returns its entry file, from TOLLGATE_BENCH_PORTKEY or installed below the folder; undefined if npm cannot install it */
export async function installPortkey(folder: string): Promise<string | undefined> {
  const prefix = process.env["TOLLGATE_BENCH_PORTKEY"] ?? join(folder, "portkey");
  const program = join(prefix, "node_modules/@portkey-ai/gateway/build/start-server.js");
  if (existsSync(program)) return program;
  const install = [
    "npm",
    "install",
    "--no-audit",
    "--no-fund",
    "--prefix",
    prefix,
    `@portkey-ai/gateway@${portkeyVersion}`,
  ];
  const { exitCode } = Bun.spawnSync(install, { stdout: "ignore", stderr: "ignore" });
  if (exitCode === 0 && existsSync(program)) return program;
  console.error(`npm could not install @portkey-ai/gateway ${portkeyVersion}; Portkey is omitted`);
  return undefined;
}
