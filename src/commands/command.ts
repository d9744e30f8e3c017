import type { Environment } from "../config.ts";

/** What a command gets of the process that it runs in. */
export interface CommandIo {
  env: Environment;
  stdin: AsyncIterable<string | Uint8Array>;
  stdout: NodeJS.WritableStream & { isTTY?: boolean };
  stderr: NodeJS.WritableStream;
  /** Aborts on the first SIGTERM or SIGINT; a second one ends the process at once. */
  signal: AbortSignal;
}

export interface Command {
  /** One line of `tollgate --help`. */
  summary: string;
  /** What `tollgate COMMAND --help` prints. */
  help: string;
  /** @returns the exit status: 0 well, 1 failed, 2 wrongly called or configured */
  run(args: string[], io: CommandIo): Promise<number>;
}

/** What the program calls itself by where PROCESSES asks for several; see serve-process.ts. */
export const serveProcessCommand = "serve-process";

/** A mistake of the operator's: one line on standard error, never a stack trace. */
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
