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

Sets a new password for the console and logs everybody out. A server that is running obeys at once.
The database is the one that DATABASE_URL names, else the one in the folder DATA_DIR (./data).

  --password-stdin   read the password from standard input, without its last line break;
                     otherwise one is generated and printed

Status: 0 when it is set; 1 where it failed; 2 for wrong usage.
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
    io.stderr.write("tollgate: ADMIN_PASSWORD is set, and will be the password again from the next start on\n");
  }
  return 0;
}

function readFlags(args: string[]): boolean {
  try {
    return parseArgs({ args, options: { "password-stdin": { type: "boolean", default: false } } }).values[
      "password-stdin"
    ];
  } catch {
    // Not repeated: a stray argument may be a password.
    throw new CommandError(
      "reset-password takes --password-stdin and nothing else; see tollgate reset-password --help",
      2,
    );
  }
}

async function readPassword({ stdin }: CommandIo): Promise<string> {
  const password = (await text(stdin)).replace(/\r?\n$/, "");
  if (password === "") throw new CommandError("standard input holds no password", 2);
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
