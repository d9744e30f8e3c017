import { parseArgs } from "node:util";
import { backupDatabase } from "../store/sqlite/backup.ts";
import { StorageError } from "../store/store.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { existingDatabase, settingsOf } from "./settings.ts";

export const summary = "copy the database into a file, also while a server uses it";

export const help = `tollgate backup FILE

Writes a consistent copy of the database to FILE, also while a server uses it. FILE must not exist.
The database is the one in DATA_DIR (default: ./data). If DATABASE_URL is set, use pg_dump instead.

The copy contains all API keys in plain text; its mode is 0600. To restore it, stop the server, put
the copy into the data folder as tollgate.db, delete tollgate.db-wal and tollgate.db-shm there, and
start the server. The file secret_key in the data folder is not part of the copy: without it, users
have to log in to the console again, but nothing else is lost.

Exit status: 0 if the copy is complete and on disk; 1 if it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const target = targetOf(args);
  const config = settingsOf(io);
  if (config.databaseUrl !== undefined) {
    throw new CommandError("DATABASE_URL: backup copies only a data folder; use pg_dump for PostgreSQL");
  }
  const database = existingDatabase(config);
  try {
    await backupDatabase({ file: database, target, clock: Date.now, signal: io.signal });
  } catch (error) {
    if (io.signal.aborted) throw new CommandError("backup was interrupted; the incomplete copy is deleted");
    throw error instanceof StorageError ? new CommandError(`${JSON.stringify(target)}: ${error.message}`) : error;
  }
  io.stdout.write(`Copied ${database} to ${target}\n`);
  return 0;
}

function targetOf(args: string[]): string {
  const [target, ...more] = positionalsOf(args);
  if (target === undefined || target === "" || more.length > 0) {
    throw new CommandError("backup takes one file name; see tollgate backup --help", 2);
  }
  return target;
}

function positionalsOf(args: string[]): string[] {
  try {
    return parseArgs({ args, options: {}, strict: true, allowPositionals: true }).positionals;
  } catch {
    throw new CommandError("backup takes no options; see tollgate backup --help", 2);
  }
}
