import { parseArgs } from "node:util";
import { backupDatabase } from "../store/sqlite/backup.ts";
import { StorageError } from "../store/store.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { existingDatabase, settingsOf } from "./settings.ts";

export const summary = "copy the live database into a file";

export const help = `tollgate backup FILE

Writes a consistent copy of the database to FILE, also while a server is using it. FILE must not
exist yet. The database is the one in the folder that DATA_DIR names (./data). Where DATABASE_URL is
set, pg_dump does this job.

The copy holds every API key as it is, so only its owner may read it. To restore it, stop the server,
put the copy in the data folder as tollgate.db, delete tollgate.db-wal and tollgate.db-shm there, and
start the server again. The file secret_key in that folder, if it is there, is not part of the copy:
without it everybody has to log in to the console again, and nothing else is lost.

Status: 0 when the copy is whole and on the disk; 1 where it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const target = targetOf(args);
  const config = settingsOf(io);
  if (config.databaseUrl !== undefined) {
    throw new CommandError("DATABASE_URL is set, so the data is in PostgreSQL: copy it with pg_dump");
  }
  const database = existingDatabase(config);
  try {
    await backupDatabase({ file: database, target, clock: Date.now, signal: io.signal });
  } catch (error) {
    if (io.signal.aborted) throw new CommandError("stopped before the copy was whole; nothing is left of it");
    throw error instanceof StorageError ? new CommandError(`${JSON.stringify(target)}: ${error.message}`) : error;
  }
  io.stdout.write(`Copied ${database} to ${target}\n`);
  return 0;
}

function targetOf(args: string[]): string {
  const [target, ...more] = positionalsOf(args);
  if (target === undefined || target === "" || more.length > 0) {
    throw new CommandError("backup takes the name of one file; see tollgate backup --help", 2);
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
