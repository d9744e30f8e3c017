import { accessSync, constants } from "node:fs";
import { hostname, userInfo } from "node:os";
import { type Config, ConfigError, type Environment, readConfig } from "../config/config.ts";
import { createLog, type Log } from "../log/log.ts";
import { openStore } from "../store/open.ts";
import type { Change } from "../domain/changes.ts";
import type { Store } from "../store/store.ts";
import { requireNotMoved } from "../store/sqlite/database-file.ts";
import { databaseFile } from "../store/sqlite/open.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { StorageError } from "../store/storage-error.ts";

/** @throws CommandError with one line per invalid variable */
export function settingsOf(io: CommandIo, environment: Environment = io.env): Config {
  try {
    return readConfig(environment, io.stdout.isTTY === true);
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message, 2) : error;
  }
}

/** The setting to check if storage fails. A DATABASE_URL contains a password, so its value is not shown. */
export function storageName({ databaseUrl, dataDir }: Config["storage"]): string {
  return databaseUrl === undefined ? `DATA_DIR ${JSON.stringify(dataDir)}` : "DATABASE_URL";
}

/** The database file in the data folder, also after a move. @throws CommandError if there is none */
export function existingDatabase({ dataDir }: Config["storage"]): string {
  const file = databaseFile(dataDir);
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
    return file;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      throw new CommandError(`DATA_DIR: this user cannot read and write ${JSON.stringify(file)} (${code})`);
    }
    throw new CommandError(
      `DATA_DIR: there is no database ${JSON.stringify(file)}; use the folder of \`tollgate serve\``,
    );
  }
}

/** The database file in the data folder. @throws CommandError if there is none, or if its data was moved to PostgreSQL */
export function databaseInUse(storage: Config["storage"]): string {
  const file = existingDatabase(storage);
  try {
    requireNotMoved(file);
    return file;
  } catch (error) {
    throw error instanceof StorageError ? new CommandError(`${storageName(storage)}: ${error.message}`) : error;
  }
}

/** Opens the database of the settings for one change, which is logged on standard error. @throws CommandError */
export async function withDatabase<T>(
  { storage }: Pick<Config, "storage">,
  { stderr }: Pick<CommandIo, "stderr">,
  change: (store: Store, log: Log) => Promise<T>,
): Promise<T> {
  const log = createLog({ level: "info", format: "pretty", clock: Date.now, write: (line) => stderr.write(line) });
  if (storage.databaseUrl === undefined) databaseInUse(storage);
  try {
    const store = await openStore({ ...storage, clock: Date.now, log });
    try {
      return await change(store, log);
    } finally {
      await store.close();
    }
  } catch (error) {
    throw error instanceof StorageError ? new CommandError(`${storageName(storage)}: ${error.message}`) : error;
  }
}

/** Who runs this command and from where, as far as the system knows: `sudo` and `ssh` set the two variables. */
export function operatorOf({
  SUDO_USER: sudoUser,
  SSH_CONNECTION: ssh,
}: Environment): Record<string, string | undefined> {
  return { user: userName(), sudoUser, host: hostname(), address: ssh?.split(" ", 1)[0] };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container's user may have no name.
    return String(process.getuid?.());
  }
}

/** A change for the record, by whoever runs this command. */
export function changeByOperator({ env }: Pick<CommandIo, "env">, action: string): Change {
  const { user, host, address = null } = operatorOf(env);
  return { actor: `${user}@${host} (command)`, role: "admin", address, action, requestId: null, changeId: null };
}
