import { build, readableCommit } from "../version.ts";
import { type Command, CommandError, type CommandIo } from "./command.ts";
import * as backup from "./backup.ts";
import * as demo from "./demo.ts";
import * as moveTo from "./move-to.ts";
import * as pushGpu from "./push-gpu.ts";
import * as resetPassword from "./reset-password.ts";
import * as serve from "./serve.ts";
import * as serveProcess from "./serve-process.ts";

const commands: Readonly<Record<string, Command>> = {
  serve,
  demo,
  "push-gpu": pushGpu,
  "reset-password": resetPassword,
  backup,
  "move-to": moveTo,
};

/** Not for people, so in no list. */
const internal: Readonly<Record<string, Command>> = { [serve.serveProcessCommand]: serveProcess };

/** Runs what the arguments name; `serve` where they name nothing. @returns the exit status */
export async function runCommand(args: string[], io: CommandIo): Promise<number> {
  const [first = "serve", ...rest] = args;
  if (first === "--version" || first === "-v") return print(io, `tollgate ${build.version} (${readableCommit()})\n`);
  if (first === "--help" || first === "-h" || first === "help") return print(io, overview());
  const all = { ...commands, ...internal };
  const named = Object.hasOwn(all, first) ? all[first] : undefined;
  // `tollgate --something` is meant for the default command.
  const command = named ?? (first.startsWith("-") ? commands["serve"] : undefined);
  if (command === undefined)
    return complain(io, new CommandError(`there is no command "${first}"; see tollgate --help`, 2));
  if (rest.includes("--help") || rest.includes("-h")) return print(io, command.help);
  try {
    return await command.run(named === undefined ? args : rest, io);
  } catch (error) {
    if (error instanceof CommandError) return complain(io, error);
    throw error;
  }
}

function print(io: CommandIo, text: string): number {
  io.stdout.write(text);
  return 0;
}

function complain(io: CommandIo, error: CommandError): number {
  for (const line of error.message.split("\n")) io.stderr.write(`tollgate: ${line}\n`);
  return error.status;
}

function overview(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const lines = Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `tollgate: a gate in front of a language-model backend

Usage: tollgate [COMMAND] [OPTIONS]

${lines.join("\n")}

tollgate COMMAND --help tells more about one of them. Without a command it serves.
`;
}
