import { ApiError } from "../admin/http/errors.ts";
import { issueToken } from "../admin/session/tokens.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { changeByOperator, settingsOf, withDatabase } from "./settings.ts";

export const summary = "create a token with which a program uses the admin API";

export const chapter = "Keys from a script";

export const help = `tollgate token --name NAME --role ROLE [--expires-at TIME] [--env-file FILE]

Creates a token for the admin API and prints it, which is the only time that it is shown. The
database is the one at DATABASE_URL, or in DATA_DIR (default: ./data).

  --name NAME        what the record of changes and the list of tokens call it
  --role ROLE        viewer reads all but secrets; admin also changes keys, prices and backends
  --expires-at TIME  an ISO 8601 timestamp with an offset, or never; by default in 90 days
${envFileHelp}

Exit status: 0 if the token is created; 1 if it failed; 2 for wrong usage.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const text = { type: "string" } as const;
  const options = { name: text, role: text, "expires-at": text, ...envFileOption };
  const { "env-file": envFile, "expires-at": expiresAt, name, role } = readArguments("token", args, options).values;
  const config = settingsOf(withServiceSettings(io, envFile));
  const asked = { name, role, expires_at: expiresAt === "never" ? null : expiresAt };
  const change = changeByOperator(io, "token.create");
  const { token } = await withDatabase(config, io, (store, log) =>
    issueToken(asked, { store, clock: Date.now, log }, change).catch(throwUsageError),
  );
  io.stdout.write(`${token}\n`);
  return 0;
}

/** The sentences of the API name its fields. */
function throwUsageError(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  throw new CommandError(`--${error.message.replace("expires_at", "expires-at")}`, 2);
}
