import { existsSync, mkdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";

const repository = join(import.meta.dir, "../..");
const folder = join(repository, "node_modules/.cache/built-program");
const folders = ["src", "drizzle", "console/dist"];
const settings = ["package.json", "bun.lock", ".ci/build"];
/** Files older than this are of no run that goes on. */
const keptMinutes = 30;

let built: string | undefined;
let isConsoleBuilt = process.env["TOLLGATE_CONSOLE_IS_BUILT"] !== undefined;

/**
 * The binary that TOLLGATE_BINARY names, or one of these sources, which starts in a third of the time that they take. It is
 * built if there is none yet; this process then keeps it, so that an edit in the middle of a run changes nothing.
 * @returns its path
 */
export function builtProgram(): string {
  return process.env["TOLLGATE_BINARY"] ?? (built ??= build());
}

/** For one test file that runs by itself. `npm test` builds the console once, and a named binary contains its own. */
export function buildConsole(): void {
  if (isConsoleBuilt || process.env["TOLLGATE_BINARY"] !== undefined) return;
  runHere([process.execPath, "--bun", "vite", "build", "console", "--logLevel", "error"]);
  isConsoleBuilt = true;
  built = undefined;
}

function build(): string {
  const file = join(folder, `tollgate-${hashSources()}`);
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true });
    // Test processes begin at the same time: one builds, and the others find its file.
    const alone = Bun.which("flock") === null ? [] : ["flock", folder];
    const options = existsSync(join(repository, "console/dist/index.html")) ? ["--keep-console"] : [];
    const script = `find "$0" -name 'tollgate-*' -mmin +${keptMinutes} -delete
      file=$1; shift; [ -e "$file" ] || { "$@" file "$file.new" && mv "$file.new" "$file"; }`;
    runHere([...alone, "sh", "-c", script, folder, file, ".ci/build", ...options]);
  }
  const now = new Date();
  utimesSync(file, now, now);
  return file;
}

/** What the binary is built from, but for packages: `bun.lock` stands for these. */
export function programFiles(): string[] {
  const inFolders = folders.flatMap((name) => Array.from(new Bun.Glob(`${name}/**/*`).scanSync(repository)));
  return [...inFolders, ...settings].toSorted();
}

/** Of the files and not of their times, which a checkout of older sources sets as well. */
function hashSources(): string {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(Bun.version + Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: repository }).stdout.toString());
  for (const path of programFiles()) {
    hash.update(`\n${path}\n`).update(readFileSync(join(repository, path)));
  }
  return hash.digest("hex").slice(0, 16);
}

function runHere(command: string[]): void {
  // `bun test` sets NODE_ENV to test, with which packages build for development.
  const env = { ...process.env, NODE_ENV: "production" };
  const { success, stderr } = Bun.spawnSync(command, { cwd: repository, env, stdout: "ignore", stderr: "pipe" });
  if (!success) throw new Error(`${command.join(" ")} failed:\n${stderr.toString()}`);
}

// `npm test` builds before it begins, so that no test's time contains the build.
if (import.meta.main) builtProgram();
