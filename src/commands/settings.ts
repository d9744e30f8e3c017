import { accessSync, constants } from "node:fs";
import { type Config, ConfigError, type Environment, readConfig } from "../config.ts";
import { databaseFile } from "../store/sqlite/open.ts";
import { CommandError, type CommandIo } from "./command.ts";

/** @throws CommandError with a line for each wrong variable */
export function settingsOf(io: CommandIo, environment: Environment = io.env): Config {
  try {
    return readConfig(environment, io.stdout.isTTY === true);
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message, 2) : error;
  }
}

/** What an operator has to look at where storage fails; an address holds a password, so it is never shown. */
export function storageName({ databaseUrl, dataDir }: Config): string {
  return databaseUrl === undefined ? `DATA_DIR ${JSON.stringify(dataDir)}` : "DATABASE_URL";
}

/** The database of a data folder that was served before. @throws CommandError where there is none */
export function existingDatabase({ dataDir }: Config): string {
  const file = databaseFile(dataDir);
  try {
    accessSync(file, constants.R_OK | constants.W_OK);
    return file;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      throw new CommandError(`this user may not use the database ${JSON.stringify(file)} (${code})`);
    }
    throw new CommandError(
      `there is no database ${JSON.stringify(file)}; set DATA_DIR to the folder that \`tollgate serve\` uses`,
    );
  }
}
