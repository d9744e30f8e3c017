import { parseArgs } from "node:util";
import { type Config, ConfigError, readConfig } from "../config.ts";
import { ListenError } from "../listen.ts";
import { createLog } from "../log.ts";
import { startServer } from "../server.ts";
import { CommandError, type CommandIo } from "./command.ts";

export const summary = "serve the proxy, the admin API and the console (the default)";

export const help = `tollgate serve

Serves the proxy (/v1), the admin API (/api) and the console (/). Everything is set by environment
variables or a .env file in the working folder; these matter first:

  PROXY_UPSTREAM_URL   the backend (http://127.0.0.1:8000)
  HOST, PORT           where to listen (127.0.0.1, 8080)
  DATA_DIR             the folder that holds the database (./data)
  ADMIN_PASSWORD       the console's password; without it the first start makes one and prints it

The README lists all of them. SIGTERM or SIGINT ends the program once running responses have ended,
or after SHUTDOWN_GRACE seconds; a second one ends it at once.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  refuseArguments(args);
  const config = readConfigOrComplain(io);
  const log = createLog({ ...config.log, clock: Date.now, write: (line) => io.stdout.write(line) });
  const print = (text: string): void => void io.stdout.write(text);
  const server = await startServer(config, { clock: Date.now, log, print }).catch(complainOfStart);
  if (!io.signal.aborted) await new Promise((resolve) => io.signal.addEventListener("abort", resolve, { once: true }));
  await server.stop();
  return 0;
}

function refuseArguments(args: string[]): void {
  try {
    parseArgs({ args, options: {}, strict: true });
  } catch {
    throw new CommandError("serve takes no arguments; everything is set by environment variables", 2);
  }
}

/** @throws CommandError with a line for each wrong variable */
export function readConfigOrComplain(io: CommandIo): Config {
  try {
    return readConfig(io.env, io.stdout.isTTY === true);
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(error.message, 2);
    throw error;
  }
}

function complainOfStart(error: unknown): never {
  if (error instanceof ListenError) throw new CommandError(error.message);
  throw error;
}
