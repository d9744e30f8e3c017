import { build, readableCommit } from "../version.ts";
import { type Command, CommandError, type CommandIo, serveProcessCommand } from "./command.ts";

type Load = () => Promise<Command>;

/** Loaded when they are asked for: a server has no use for the others in its memory. */
const commands: Readonly<Record<string, Load>> = {
  serve: () => import("./serve.ts"),
  demo: () => import("./demo.ts"),
  "push-gpu": () => import("./push-gpu.ts"),
  "reset-password": () => import("./reset-password.ts"),
  backup: () => import("./backup.ts"),
  "move-to": () => import("./move-to.ts"),
};

/** Not for people, so in no list. */
const internal: Readonly<Record<string, Load>> = { [serveProcessCommand]: () => import("./serve-process.ts") };

/** Runs what the arguments name; `serve` where they name nothing. @returns the exit status */
export async function runCommand(args: string[], io: CommandIo): Promise<number> {
  const [first = "serve", ...rest] = args;
  if (first === "--version" || first === "-v") return print(io, `tollgate ${build.version} (${readableCommit()})\n`);
  if (first === "--help" || first === "-h" || first === "help") return print(io, await overview());
  const all = { ...commands, ...internal };
  const named = Object.hasOwn(all, first) ? all[first] : undefined;
  // `tollgate --something` is meant for the default command.
  const load = named ?? (first.startsWith("-") ? commands["serve"] : undefined);
  if (load === undefined)
    return complain(io, new CommandError(`there is no command "${first}"; see tollgate --help`, 2));
  const command = await load();
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

async function overview(): Promise<string> {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const lines = await Promise.all(
    Object.entries(commands).map(async ([name, load]) => `  ${name.padEnd(width)}  ${(await load()).summary}`),
  );
  return `tollgate: a gate in front of a language-model backend

Usage: tollgate [COMMAND] [OPTIONS]

${lines.join("\n")}

tollgate COMMAND --help tells more about one of them. Without a command it serves.
`;
}
