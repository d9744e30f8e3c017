// The commands of `tollgate`, a file for each: its help, and `run`, which returns the exit status.
//
// It keeps true: a command is loaded when it is needed, so that a server does not hold the others in memory. An error
// that the operator can fix is a `CommandError`, printed without a stack trace; any other is a fault of ours.
// Arguments, environment, streams and signals of the process come as arguments. Only `main.ts` imports this room.

import { build, readableCommit } from "../config/version.ts";
import { type Command, CommandError, type CommandIo, serveProcessCommand } from "./command.ts";

type Load = () => Promise<Command>;

const commands: Readonly<Record<string, Load>> = {
  serve: () => import("./serve.ts"),
  demo: () => import("./demo.ts"),
  "push-gpu": () => import("./push-gpu.ts"),
  "reset-password": () => import("./reset-password.ts"),
  token: () => import("./token.ts"),
  backup: () => import("./backup.ts"),
  restore: () => import("./restore.ts"),
  check: () => import("./check.ts"),
  models: () => import("./models.ts"),
  "move-to": () => import("./move-to.ts"),
};

/** Not listed in the help. */
const internal: Readonly<Record<string, Load>> = { [serveProcessCommand]: () => import("./serve-process.ts") };

/** Runs the command that the arguments name, by default `serve`. @returns the exit status */
export async function runCommand(args: string[], io: CommandIo): Promise<number> {
  const [first = "serve", ...rest] = args;
  if (["--version", "-v", "-V", "version"].includes(first))
    return print(io, `tollgate ${build.version} (${readableCommit()})\n`);
  if (first === "--help" || first === "-h" || first === "help") return print(io, await mainHelp());
  const all = { ...commands, ...internal };
  const named = Object.hasOwn(all, first) ? all[first] : undefined;
  // `tollgate --option` is for the default command.
  const load = named ?? (first.startsWith("-") ? commands["serve"] : undefined);
  if (load === undefined)
    return reportError(io, new CommandError(`unknown command "${first}"; see tollgate --help`, 2));
  const command = await load();
  if (rest.includes("--help") || rest.includes("-h")) {
    return print(io, `${command.help}\nThe handbook tells more, in the console under Help: ${command.chapter}.\n`);
  }
  try {
    return await command.run(named === undefined ? args : rest, io);
  } catch (error) {
    if (error instanceof CommandError) return reportError(io, error);
    throw error;
  }
}

function print(io: CommandIo, text: string): number {
  io.stdout.write(text);
  return 0;
}

function reportError(io: CommandIo, error: CommandError): number {
  for (const line of error.message.split("\n")) io.stderr.write(`tollgate: ${line}\n`);
  return error.status;
}

async function mainHelp(): Promise<string> {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const lines = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => `  ${name.padEnd(width)}  ${(await load()).summary}`),
  );
  return `tollgate: a gateway for a language-model backend

Usage: tollgate [COMMAND] [OPTIONS]

${lines.join("\n")}

Run \`tollgate COMMAND --help\` for help about a command. The default command is serve.
`;
}
