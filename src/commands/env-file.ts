import { accessSync, constants, existsSync, readFileSync } from "node:fs";
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
 * @throws CommandError if the given file cannot be read
 */
export function withServiceSettings(
  io: CommandIo,
  given: string | undefined,
  { envFile, dataDir } = service,
): CommandIo {
  if (given !== undefined) return announced(withEnvFile(io, given), given);
  if (isSet(io.env["DATA_DIR"]) || isSet(io.env["DATABASE_URL"]) || !isReadable(envFile)) return io;
  const { env, ...rest } = withEnvFile(io, envFile);
  // Units set DATA_DIR beside the file.
  const unset = !isSet(env["DATA_DIR"]) && existsSync(dataDir);
  return announced({ ...rest, env: unset ? { ...env, DATA_DIR: dataDir } : env }, envFile);
}

function announced(io: CommandIo, file: string): CommandIo {
  io.stdout.write(`Settings from ${file}\n`);
  return io;
}

/** @throws CommandError if the file cannot be read */
export function withEnvFile(io: CommandIo, file: string): CommandIo {
  const own = Object.fromEntries(Object.entries(io.env).filter(([, value]) => isSet(value)));
  const env = { ...io.env, ...parseEnvFile(readText(file)), ...own };
  restartWith(env);
  return { ...io, env };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `--env-file: ${JSON.stringify(file)} cannot be read (${code}) (handbook: The file of settings)`,
      2,
    );
  }
}

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
