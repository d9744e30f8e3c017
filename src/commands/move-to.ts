import { moveToPostgres } from "../store/move/move.ts";
import { movedMarkerOf } from "../store/sqlite/database-file.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { existingDatabase, settingsOf } from "./settings.ts";
import { placeOf, StorageError } from "../store/storage-error.ts";

export const summary = "copy the data folder into a PostgreSQL database";

export const chapter = "Scale";

export const help = `tollgate move-to [--env-file FILE] [URL | --url-stdin]

Copies all data from DATA_DIR (default: ./data) into an empty PostgreSQL database and verifies the
copy. Stop the server first: the command refuses while one runs. After an interruption, run the command
again: it starts over, and until it succeeds no server starts on the target.

Then it marks the data folder with the file tollgate.db-moved. The other commands refuse a marked
folder, so that nothing counts into the old copy or backs it up. To use the folder again, without what
was counted since, delete that file.

  URL           postgres://user:password@host/database (default: DATABASE_URL). The process list
                shows it to every user of this host, so prefer --url-stdin or DATABASE_URL
  --url-stdin   read the address from standard input
${envFileHelp}

Then start the server with DATABASE_URL and SECRET_KEY. To keep users logged in, set SECRET_KEY to the
content of the file secret_key in the data folder.

Exit status: 0 if the copy is complete; 1 if it failed; 2 for wrong usage.
`;

export async function run(args: string[], given: CommandIo): Promise<number> {
  const options = { "url-stdin": { type: "boolean", default: false }, ...envFileOption } as const;
  const { values, positionals } = readArguments("move-to", args, options, true);
  const io = withServiceSettings(given, values["env-file"]);
  const typed = values["url-stdin"] ? [await io.endAtSignals(() => readLine(io))] : [];
  const url = targetOf([...typed, ...positionals], io.env);
  // The source is always the data folder, also if DATABASE_URL names the target.
  const database = existingDatabase(settingsOf(io, { ...io.env, DATABASE_URL: undefined }).storage);
  io.stdout.write(`From ${database} to PostgreSQL at ${placeOf(url)}\n`);
  try {
    const onProgress = createProgress(io.stdout);
    const rows = await moveToPostgres({ file: database, url, clock: Date.now, signal: io.signal, onProgress });
    io.stdout.write(
      `Copied ${rows} rows, verified all sums, and marked the data folder with ${movedMarkerOf(database)}.\n` +
        "Start the server with DATABASE_URL and SECRET_KEY.\n",
    );
    return 0;
  } catch (error) {
    throw error instanceof StorageError ? new CommandError(`move-to: ${error.message}`) : error;
  }
}

function targetOf(given: string[], { DATABASE_URL = "" }: CommandIo["env"]): string {
  const [url = DATABASE_URL, ...more] = given;
  // Not quoted: it contains a password.
  if (more.length > 0 || !/^postgres(ql)?:\/\//.test(url)) {
    throw new CommandError(
      "move-to takes one postgres:// address, --url-stdin, or DATABASE_URL; see tollgate move-to --help",
      2,
    );
  }
  return url;
}

/** Up to the first line break, so that Enter ends it on a terminal. */
async function readLine({ stdin, stderr }: CommandIo): Promise<string> {
  if (stdin.isTTY === true) stderr.write("Address of the target: ");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stdin) {
    text += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) break;
  }
  return text.split("\n", 1)[0]?.trim() ?? "";
}

const barWidth = 30;

/** A progress bar on a terminal, otherwise one line for each finished table. */
function createProgress(stdout: CommandIo["stdout"]): (table: string, copied: number, total: number) => void {
  return (table, copied, total) => {
    const done = copied >= total;
    if (stdout.isTTY !== true && !done) return;
    const filled = total === 0 ? barWidth : Math.floor((copied / total) * barWidth);
    const bar = stdout.isTTY === true ? `\r${"█".repeat(filled)}${"░".repeat(barWidth - filled)} ` : "";
    stdout.write(`${bar}${table.padEnd(16)} ${copied} of ${total} rows${done ? "\n" : ""}`);
  };
}
