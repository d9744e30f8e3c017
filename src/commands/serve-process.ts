import { findParentChannel } from "../supervisor/child-side.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { startOrExplain, untilStopped } from "./serve.ts";
import { settingsOf } from "./settings.ts";

export const summary = "one of the processes that `serve` starts where PROCESSES asks for several";

export const help = `tollgate serve-process

${summary}
`;

/** Serves until the parent, or a signal to this process alone, ends it. */
export async function run(_args: string[], io: CommandIo): Promise<number> {
  const member = findParentChannel();
  if (member === undefined) throw new CommandError("serve-process is started by serve; set PROCESSES instead", 2);
  const server = await startOrExplain(settingsOf(io), io, member);
  member.reportListening(server);
  await untilStopped(AbortSignal.any([io.signal, member.stopRequested]));
  member.reportDraining();
  await server.stop();
  await member.reportFinalMetrics();
  return 0;
}
