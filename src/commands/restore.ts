import { existsSync } from "node:fs";
import { timestampOf } from "../store/sqlite/backup.ts";
import { databaseFile } from "../store/sqlite/open.ts";
import { restoreDatabase } from "../store/sqlite/restore.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { settingsOf } from "./settings.ts";
import { StorageError } from "../store/storage-error.ts";

export const summary = "replace the database by a backup";

export const chapter = "Backup and upgrade";

export const help = `tollgate restore [--env-file FILE] FILE

Replaces the database in DATA_DIR (default: ./data) by a copy of FILE, which \`tollgate backup\` wrote.
Stop the server first: the command refuses while one runs. FILE is read completely before anything
changes, and refused if it is damaged, or if a newer version or another program wrote it.

The old database is kept in the same folder as tollgate.db.before-DATETTIMEZ, together with its log.
Delete it when you no longer need it. The next start migrates a backup of an older version.

${envFileHelp}

Exit status: 0 if the database is replaced; 1 if it failed, and the database is unchanged; 2 for wrong
usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments("restore", args, envFileOption, true);
  const [source, ...more] = positionals;
  if (source === undefined || source === "" || more.length > 0) {
    throw new CommandError("restore takes one file name; see tollgate restore --help", 2);
  }
  const { databaseUrl, dataDir } = settingsOf(withServiceSettings(io, values["env-file"])).storage;
  if (databaseUrl !== undefined) {
    throw new CommandError(
      "DATABASE_URL: restore replaces only a data folder; use pg_restore for PostgreSQL (handbook: Backups)",
    );
  }
  const file = databaseFile(dataDir);
  const keptFile = freeName(file, Date.now());
  try {
    const wasReplaced = await restoreDatabase({ source, file, keptFile, clock: Date.now, signal: io.signal });
    io.stdout.write(`Restored ${file} from ${source}\n`);
    if (wasReplaced) io.stdout.write(`The old database is ${keptFile}\n`);
    return 0;
  } catch (error) {
    if (io.signal.aborted) throw new CommandError("restore was interrupted; the database is unchanged");
    throw error instanceof StorageError ? new CommandError(`restore: ${error.message}`) : error;
  }
}

/** Names the old database after the next second if an earlier one has the name. */
function freeName(file: string, now: number): string {
  const name = `${file}.before-${timestampOf(now)}`;
  return existsSync(name) ? freeName(file, now + 1000) : name;
}
