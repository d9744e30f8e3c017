import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const repository = join(import.meta.dir, "../..");
/** Test files run at the same time, and each build writes the same file. */
const alone = Bun.which("flock") === null ? [] : ["flock", join(repository, "dist/.building")];

/** Builds the binary, unless TOLLGATE_BINARY names one, and copies it to a file. */
export async function buildBinary(target: string): Promise<void> {
  const built = process.env["TOLLGATE_BINARY"];
  if (built !== undefined) {
    copyFileSync(built, target);
    return;
  }
  mkdirSync(join(repository, "dist"), { recursive: true });
  const command = ["sh", "-c", 'npm run build -- --keep-console && cp dist/tollgate "$1"', "sh", target];
  const builder = Bun.spawn([...alone, ...command], { cwd: repository, stdout: "ignore", stderr: "pipe" });
  const complaints = await new Response(builder.stderr).text();
  if ((await builder.exited) !== 0) throw new Error(complaints);
}
