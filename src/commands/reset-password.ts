import { text } from "node:stream/consumers";
import { resetPassword, wasPasswordFromEnvironment } from "../admin/session/bootstrap.ts";
import { findPasswordProblem } from "../admin/session/contract.ts";
import type { Config } from "../config/config.ts";
import type { Store } from "../store/store.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { changeByOperator, operatorOf, settingsOf, withDatabase } from "./settings.ts";

export const summary = "set a new password for the console";

export const chapter = "Backup and upgrade";

export const help = `tollgate reset-password [--password-stdin] [--env-file FILE]

Sets a new password for the console and ends all sessions. Takes effect immediately, also in a
running server. The database is the one at DATABASE_URL, or in DATA_DIR (default: ./data). A start
with ADMIN_PASSWORD replaces the new password.

  --password-stdin   read the password from standard input, without its final line break;
                     by default a password is generated and printed
${envFileHelp}

Exit status: 0 if the password is set; 1 if it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const options = { "password-stdin": { type: "boolean", default: false }, ...envFileOption } as const;
  const { "password-stdin": fromStdin, "env-file": envFile } = readArguments("reset-password", args, options).values;
  const config = settingsOf(withServiceSettings(io, envFile));
  const given = fromStdin ? await io.endAtSignals(() => readPassword(io)) : undefined;
  const { password, warning } = await withDatabase(config, io, async (store, log) => {
    const reset = {
      password: await resetPassword(store, given, changeByOperator(io, "password.reset")),
      warning: await findWarning(config.admin, store),
    };
    log.info("Password reset; all sessions ended", operatorOf(io.env));
    return reset;
  });
  io.stdout.write(
    given === undefined ? `username   ${config.admin.username}\npassword   ${password}\n` : "The password is set.\n",
  );
  if (warning !== undefined) io.stderr.write(`tollgate: ADMIN_PASSWORD: ${warning}\n`);
  return 0;
}

async function readPassword({ stdin }: CommandIo): Promise<string> {
  const password = (await text(stdin)).replace(/\r?\n$/, "");
  if (password === "") throw new CommandError("--password-stdin: standard input is empty; write the password to it", 2);
  if (/[\r\n]/.test(password))
    throw new CommandError("--password-stdin: standard input has several lines; write the password alone to it", 2);
  const problem = findPasswordProblem(password, "the password");
  if (problem !== undefined) throw new CommandError(`--password-stdin: ${problem}`, 2);
  return password;
}

/** The server's environment is usually not this command's: a unit file sets it. */
async function findWarning({ password }: Config["admin"], store: Store): Promise<string | undefined> {
  if (password !== undefined) return "is set, and replaces the new password at the next start";
  if (!(await wasPasswordFromEnvironment(store))) return undefined;
  return "the server's last start had it, and the next one with it replaces the new password";
}
