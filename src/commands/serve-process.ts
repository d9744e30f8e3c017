import { findParentChannel } from "../supervisor/child-side.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { startServing, untilStopped } from "./serve.ts";
import { settingsOf } from "./settings.ts";

export const summary = "one of the processes that `serve` starts if PROCESSES > 1";

export const chapter = "Deploy";

export const help = `tollgate serve-process

${summary}
`;

/** Serves until the parent or a signal to this process stops it. */
export async function run(_args: string[], io: CommandIo): Promise<number> {
  const parent = findParentChannel();
  if (parent === undefined)
    throw new CommandError("serve-process cannot be started directly; set PROCESSES instead", 2);
  const server = await startServing(settingsOf(io), io, parent);
  parent.reportListening(server);
  await untilStopped(AbortSignal.any([io.signal, parent.stopRequested]));
  parent.reportDraining();
  const isComplete = await server.stop();
  await parent.reportFinalMetrics();
  return isComplete ? 0 : 1;
}
