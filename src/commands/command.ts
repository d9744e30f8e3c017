import { parseArgs, type ParseArgsConfig } from "node:util";
import type { Environment } from "../config/config.ts";

/** The parts of the process that a command uses. */
export interface CommandIo {
  env: Environment;
  stdin: AsyncIterable<string | Uint8Array> & { isTTY?: boolean };
  stdout: NodeJS.WritableStream & { isTTY?: boolean };
  stderr: NodeJS.WritableStream;
  /** Aborts on the first SIGTERM, SIGINT or SIGHUP; a second SIGTERM or SIGINT exits immediately. */
  signal: AbortSignal;
  /** Lets these signals end the process at once, as if it had no handlers, while it does work that needs no clean-up. */
  endAtSignals<T>(work: () => Promise<T>): Promise<T>;
}

export interface Command {
  /** The line in `tollgate --help`. */
  summary: string;
  /** The output of `tollgate COMMAND --help`. */
  help: string;
  /** The chapter of the handbook that tells more. */
  chapter: string;
  /** @returns the exit status: 0 success, 1 failure, 2 wrong usage or configuration */
  run(args: string[], io: CommandIo): Promise<number>;
}

/** The command that the supervisor runs in each process; see serve-process.ts. */
export const serveProcessCommand = "serve-process";

/** An error that the operator can fix: printed on standard error without a stack trace. */
export class CommandError extends Error {
  override name = "CommandError";

  constructor(
    message: string,
    readonly status: 1 | 2 = 1,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const listed = new Intl.ListFormat("en-GB");

/** The arguments of a command. @throws CommandError that quotes none of them: one may be a password */
export function readArguments<const Options extends NonNullable<ParseArgsConfig["options"]>>(
  command: string,
  args: string[],
  options: Options,
  allowPositionals = false,
) {
  try {
    return parseArgs({ args, options, allowPositionals });
  } catch {
    const names = Object.keys(options).map((name) => `--${name}`);
    const taken =
      names.length === 0 ? "no arguments" : `only the option${names.length > 1 ? "s" : ""} ${listed.format(names)}`;
    throw new CommandError(`${command} takes ${taken}; see tollgate ${command} --help`, 2);
  }
}
