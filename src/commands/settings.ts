import { accessSync, constants } from "node:fs";
import { type Config, ConfigError, type Environment, readConfig } from "../config.ts";
import { databaseFile } from "../store/open.ts";
import { CommandError, type CommandIo } from "./command.ts";

/** @throws CommandError with a line for each wrong variable */
export function settingsOf(io: CommandIo, environment: Environment = io.env): Config {
  try {
    return readConfig(environment, io.stdout.isTTY === true);
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message, 2) : error;
  }
}

/** Falling back to SQLite would hide an operator's data from them. @throws CommandError */
export function refuseOtherStorage({ databaseUrl }: Config): void {
  if (databaseUrl === undefined) return;
  throw new CommandError(
    "DATABASE_URL: this version keeps its data in SQLite alone; leave it unset, and set DATA_DIR",
    2,
  );
}

/** The database of a data folder that was served before. @throws CommandError where there is none */
export function existingDatabase(config: Config): string {
  refuseOtherStorage(config);
  const file = databaseFile(config.dataDir);
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
