import { accessSync, constants, existsSync, lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import type { Environment } from "../config/config.ts";
import { restartWith } from "../runtime/bun-settings.ts";
import { CommandError, type CommandIo } from "./command.ts";

/** Where the service of the handbook has its settings and its data. */
const service = { envFile: "/etc/tollgate.env", dataDir: "/var/lib/tollgate" };

/** The option as `parseArgs` takes it. */
export const envFileOption = { "env-file": { type: "string" } } as const;

/** In the help of commands that use the service's settings unless told otherwise. */
export const envFileHelp = `  --env-file FILE    read settings from FILE, one NAME=value a line; the environment overrides them.
                     By default from ${service.envFile}, if it is readable and neither DATA_DIR
                     nor DATABASE_URL is set. The first line of output names the file`;

/**
 * The command's input and output with the settings of a file: the given one, or the service's. Writes the file's name.
 * @throws CommandError if the given file cannot be read; without one, if a server that is started here may use another
 * database
 */
export function withServiceSettings(
  io: CommandIo,
  given: string | undefined,
  { envFile, dataDir } = service,
): CommandIo {
  if (given !== undefined) return announced(withEnvFile(io, given), given);
  if (isSet(io.env["DATA_DIR"]) || isSet(io.env["DATABASE_URL"])) return io;
  if (hasDotEnv())
    throw problem(
      ".env: only serve and demo read it by themselves; use --env-file .env, or set DATA_DIR or DATABASE_URL",
    );
  if (!isReadable(envFile)) {
    if (existsSync(envFile)) io.stderr.write(`tollgate: ${envFile} cannot be read; run it with sudo to use it\n`);
    return io;
  }
  const { env, ...rest } = withEnvFile(io, envFile);
  // Units set DATA_DIR beside the file.
  const unset = !isSet(env["DATA_DIR"]) && existsSync(dataDir);
  return announced({ ...rest, env: unset ? { ...env, DATA_DIR: dataDir } : env }, envFile);
}

function announced(io: CommandIo, file: string): CommandIo {
  io.stdout.write(`Settings from ${file}\n`);
  return io;
}

/**
 * A server's input and output with the settings of the given file, or of `.env` in the working folder.
 * @throws CommandError if another user could have written that `.env`, or if it cannot be read
 */
export function withServerSettings(io: CommandIo, given: string | undefined): CommandIo {
  if (given !== undefined) return withEnvFile(io, given);
  if (!hasDotEnv()) return io;
  requireOwnDotEnv();
  return withEnvFile(io, ".env");
}

/** A folder of that name holds something else, such as Python's packages. */
function hasDotEnv(): boolean {
  try {
    return !lstatSync(".env").isDirectory();
  } catch {
    return false;
  }
}

/** What other readers of `.env` take for something else. */
const otherSyntax = /^[ \t]*export[ \t]|^[^#;"'\n]*=[^"'\n]*[ \t]#/m;

function requireOwnDotEnv(): void {
  const file = reading(".env", realpathSync);
  const isOwn = (path: string): boolean => {
    const { uid, mode } = lstatSync(path);
    return (uid === 0 || uid === process.geteuid?.()) && (mode & 0o022) === 0;
  };
  const other = [process.cwd(), dirname(file), file].find((path) => !isOwn(path));
  if (other !== undefined)
    throw problem(`.env: another user can write ${JSON.stringify(other)}; only you or root may own and write it`);
  if (otherSyntax.test(readText(file)))
    throw problem(
      ".env: a line begins with export, or has a comment behind its value; remove that, or quote the value",
    );
}

/** Whoever writes such a variable of Bun, the dynamic linker or the allocator may run code. */
const steersRuntime = /^(?!NODE_EXTRA_CA_CERTS$)(?:BUN|DYLD|LD|MALLOC|MIMALLOC|NODE)_/;

function withEnvFile(io: CommandIo, file: string): CommandIo {
  const own = Object.fromEntries(Object.entries(io.env).filter(([, value]) => isSet(value)));
  const given = Object.entries(parseEnvFile(readText(file)));
  const settings = Object.fromEntries(given.filter(([name]) => !steersRuntime.test(name)));
  // Bun reads it only at its start.
  const { NODE_EXTRA_CA_CERTS } = settings;
  if (NODE_EXTRA_CA_CERTS !== undefined) restartWith({ NODE_EXTRA_CA_CERTS });
  const ignored = given.flatMap(([name]) => (steersRuntime.test(name) ? [name] : []));
  if (ignored.length > 0)
    io.stderr.write(`tollgate: ${file}: ${ignored.join(", ")} ignored; only the environment can set the runtime\n`);
  return { ...io, env: { ...io.env, ...settings, ...own } };
}

const readText = (file: string): string => reading(file, (path) => readFileSync(path, "utf8"));

function reading(file: string, read: (file: string) => string): string {
  try {
    return read(file);
  } catch (error) {
    throw problem(`--env-file: ${JSON.stringify(file)} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

const problem = (text: string): CommandError => new CommandError(`${text} (handbook: The file of settings)`, 2);

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** An empty value counts as unset. */
const isSet = (value: string | undefined): boolean => value !== undefined && value !== "";

/** A part of a value: a continued line, an escaped character, quoted text, or any other character of the line. */
const part = /\\\n|\\([^])|"((?:[^\\"]|\\[^])*)"|'([^']*)'|[^\n]/g;
/** Nothing follows the parts, so that none of them is tried in another way. */
const assignment = new RegExp(`^[ \\t]*([A-Za-z_]\\w*)[ \\t]*=((?:${part.source})*)`, "gm");

/** Reads what systemd reads as an `EnvironmentFile` (systemd.exec(5)): `#` within a value is a part of it. */
export function parseEnvFile(text: string): Environment {
  const lines = text.replaceAll("\r\n", "\n").replaceAll(/^[ \t]*[#;].*$/gm, "");
  return Object.fromEntries([...lines.matchAll(assignment)].map(([, name = "", value = ""]) => [name, unquote(value)]));
}

const unquote = (value: string): string =>
  value.trim().replaceAll(part, (text: string, escaped?: string, double?: string, single?: string) => {
    if (text === "\\\n") return "";
    if (double !== undefined) return double.replaceAll(/\\\n/g, "").replaceAll(/\\(["\\`$])/g, "$1");
    return single ?? escaped ?? text;
  });
