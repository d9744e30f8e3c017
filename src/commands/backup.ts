import { statSync } from "node:fs";
import { addBackup, backupDatabase } from "../store/sqlite/backup.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { databaseInUse, settingsOf } from "./settings.ts";
import { StorageError } from "../store/storage-error.ts";

export const summary = "copy the database into a file, also while a server uses it";

export const chapter = "Backup and upgrade";

export const help = `tollgate backup [--env-file FILE] FILE
tollgate backup [--env-file FILE] --keep N DIR

Writes a consistent copy of the database, also while a server uses it. FILE must not exist.
The database is the one in DATA_DIR (default: ./data). If DATABASE_URL is set, use pg_dump instead.

  --keep N           write tollgate-DATETTIMEZ.db into the existing folder DIR, and when it is
                     complete, delete all but the newest N (1 to 10000) of the files with such a
                     name; for a timer
${envFileHelp}

The copy contains all API keys in plain text; its mode is 0600. The file secret_key in the data folder
is not part of the copy: without it, users have to log in to the console again, but nothing else is
lost. \`tollgate restore\` puts a copy back.

Exit status: 0 if the copy is complete and on disk; 1 if it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = readArguments("backup", args, { keep: { type: "string" }, ...envFileOption }, true);
  const [target, ...more] = positionals;
  if (target === undefined || target === "" || more.length > 0) {
    throw new CommandError("backup takes one file name, or --keep N and one folder; see tollgate backup --help", 2);
  }
  const keep = values.keep === undefined ? undefined : keepOf(values.keep);
  const { storage } = settingsOf(withServiceSettings(io, values["env-file"]));
  if (storage.databaseUrl !== undefined) {
    throw new CommandError(
      "DATABASE_URL: backup copies only a data folder; use pg_dump for PostgreSQL (handbook: Backups)",
    );
  }
  const file = databaseInUse(storage);
  const written = await backUp(file, target, keep, io.signal);
  io.stdout.write(`Copied ${file} to ${written}\n`);
  return 0;
}

/** @param target a folder if `keep` is a number. @returns the file that was written */
async function backUp(file: string, target: string, keep: number | undefined, signal: AbortSignal): Promise<string> {
  const options = { file, clock: Date.now, signal };
  try {
    if (keep !== undefined) return await addBackup({ ...options, folder: existingFolder(target), keep });
    await backupDatabase({ ...options, target });
    return target;
  } catch (error) {
    if (signal.aborted) throw new CommandError("backup was interrupted; the incomplete copy is deleted");
    throw error instanceof StorageError ? new CommandError(`${JSON.stringify(target)}: ${error.message}`) : error;
  }
}

function existingFolder(folder: string): string {
  let problem = "there is no such folder";
  try {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return folder;
  } catch (error) {
    problem = `it cannot be read (${(error as NodeJS.ErrnoException).code})`;
  }
  throw new CommandError(`${JSON.stringify(folder)}: ${problem}`);
}

function keepOf(given: string): number {
  const keep = /^\d{1,5}$/.test(given) ? Number(given) : 0;
  if (keep >= 1 && keep <= 10_000) return keep;
  throw new CommandError("backup takes a whole number from 1 to 10000 after --keep; see tollgate backup --help", 2);
}
