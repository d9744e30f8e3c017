import { parseArgs } from "node:util";
import { moveToPostgres } from "../store/move/move.ts";
import { StorageError } from "../store/store.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { existingDatabase, settingsOf } from "./settings.ts";

export const summary = "copy the data folder into a PostgreSQL database";

export const help = `tollgate move-to [URL]

Copies everything in the data folder that DATA_DIR names (./data) into an empty PostgreSQL database,
compares the two, and leaves the data folder as it is. Stop the server before. Broken off, it can be
run again and starts over; until it is whole, no server starts on the target.

  URL   postgres://user:password@host/database; DATABASE_URL where it is left out. Every user of
        this host can read an argument in the list of processes, so better set DATABASE_URL

Afterwards start the server with DATABASE_URL and SECRET_KEY. With the text of the file secret_key in
the data folder as SECRET_KEY, if it is there, everybody stays logged in.

Status: 0 when the copy is whole; 1 where it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const url = targetOf(args, io);
  // The data folder's own settings: where the data goes says nothing about where it is.
  const database = existingDatabase(settingsOf(io, { ...io.env, DATABASE_URL: undefined }));
  try {
    const onProgress = createProgress(io.stdout);
    const rows = await moveToPostgres({ file: database, url, signal: io.signal, onProgress });
    io.stdout.write(
      `Copied ${rows} rows, and every sum is the same. Start the server with DATABASE_URL and SECRET_KEY.\n`,
    );
    return 0;
  } catch (error) {
    throw error instanceof StorageError ? new CommandError(`move-to: ${error.message}`) : error;
  }
}

function targetOf(args: string[], io: CommandIo): string {
  const [url = io.env["DATABASE_URL"] ?? "", ...more] = positionalsOf(args);
  // Not repeated: it holds a password.
  if (more.length > 0 || !/^postgres(ql)?:\/\//.test(url)) {
    throw new CommandError("move-to takes one postgres:// address, or DATABASE_URL; see tollgate move-to --help", 2);
  }
  return url;
}

function positionalsOf(args: string[]): string[] {
  try {
    return parseArgs({ args, options: {}, strict: true, allowPositionals: true }).positionals;
  } catch {
    throw new CommandError("move-to takes no options; see tollgate move-to --help", 2);
  }
}

const barWidth = 30;

/** On a terminal a bar that fills, else one line for each table that is done. */
function createProgress(stdout: CommandIo["stdout"]): (table: string, copied: number, total: number) => void {
  return (table, copied, total) => {
    const done = copied >= total;
    if (stdout.isTTY !== true && !done) return;
    const filled = total === 0 ? barWidth : Math.floor((copied / total) * barWidth);
    const bar = stdout.isTTY === true ? `\r${"█".repeat(filled)}${"░".repeat(barWidth - filled)} ` : "";
    stdout.write(`${bar}${table.padEnd(16)} ${copied} of ${total} rows${done ? "\n" : ""}`);
  };
}
