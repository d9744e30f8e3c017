import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { resetPassword } from "../admin/bootstrap.ts";
import type { Config } from "../config.ts";
import { createLog } from "../log/log.ts";
import { openStore } from "../store/open.ts";
import { StorageError } from "../store/store.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { existingDatabase, settingsOf, storageName } from "./settings.ts";

export const summary = "set a new password for the console";

export const help = `tollgate reset-password [--password-stdin]

Sets a new password for the console and ends all sessions. Takes effect immediately, also in a
running server. The database is the one at DATABASE_URL, or in DATA_DIR (default: ./data).

  --password-stdin   read the password from standard input, without its final line break;
                     by default a password is generated and printed

Exit status: 0 if the password is set; 1 if it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const fromStdin = readFlags(args);
  const config = settingsOf(io);
  if (config.databaseUrl === undefined) existingDatabase(config);
  const given = fromStdin ? await readPassword(io) : undefined;
  const password = await reset(config, given, io);
  io.stdout.write(
    given === undefined ? `username   ${config.admin.username}\npassword   ${password}\n` : "The password is set.\n",
  );
  if (config.admin.password !== undefined) {
    io.stderr.write("tollgate: ADMIN_PASSWORD: is set, and replaces the new password at the next start\n");
  }
  return 0;
}

function readFlags(args: string[]): boolean {
  try {
    return parseArgs({ args, options: { "password-stdin": { type: "boolean", default: false } } }).values[
      "password-stdin"
    ];
  } catch {
    // Not quoted: a stray argument may be a password.
    throw new CommandError("reset-password takes only --password-stdin; see tollgate reset-password --help", 2);
  }
}

async function readPassword({ stdin }: CommandIo): Promise<string> {
  const password = (await text(stdin)).replace(/\r?\n$/, "");
  if (password === "") throw new CommandError("--password-stdin: standard input is empty; write the password to it", 2);
  return password;
}

async function reset(config: Config, given: string | undefined, io: CommandIo): Promise<string> {
  const clock = Date.now;
  const log = createLog({ level: "error", format: "pretty", clock, write: (line) => io.stderr.write(line) });
  try {
    const store = await openStore({ dataDir: config.dataDir, databaseUrl: config.databaseUrl, clock, log });
    try {
      return await resetPassword(store, given);
    } finally {
      await store.close();
    }
  } catch (error) {
    throw error instanceof StorageError ? new CommandError(`${storageName(config)}: ${error.message}`) : error;
  }
}
