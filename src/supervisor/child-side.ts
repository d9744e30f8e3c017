import type { Addresses, AskedOfParent, AskedOfProcess, GroupFigures, OwnFigures } from "./protocol.ts";
import { parentDeadlineMs } from "./protocol.ts";
import { createRpc } from "./rpc.ts";

/** One of the processes that share a port, as it sees its parent. */
export interface Member {
  /** The parent wants this process to end, or is gone itself. */
  stopped: AbortSignal;
  /** Hands over the own figures for those of all. */
  join(own: OwnFigures): GroupFigures;
  listening(at: Addresses): void;
  draining(): void;
  /** Resolves when the parent has the last figures, or cannot have them. */
  leave(): Promise<void>;
}

/** @returns undefined in a process that no parent started */
export function joinParent(): Member | undefined {
  const send = process.send?.bind(process);
  if (send === undefined) return undefined;
  const stop = new AbortController();
  let figures: OwnFigures | undefined;
  const own: AskedOfProcess = {
    metrics: async () => (await figures?.metrics()) ?? [],
    inFlight: () => figures?.inFlight() ?? 0,
    alive() {},
    stop: () => stop.abort(),
  };
  const parent = createRpc<AskedOfParent>(own, send, parentDeadlineMs);
  process.on("message", parent.receive);
  process.on("disconnect", () => {
    parent.close();
    stop.abort();
  });
  const gone = (): void => {};
  return {
    stopped: stop.signal,
    join(ownFigures) {
      figures = ownFigures;
      return { metricsText: () => parent.call("metricsText"), inFlight: () => parent.call("inFlight") };
    },
    // These two alone: what a caller has beside them may be nothing that can be sent.
    listening: ({ url, adminUrl }) => void parent.call("listening", { url, adminUrl }).catch(gone),
    draining: () => void parent.call("draining").catch(gone),
    leave: async () => parent.call("leaving", await own.metrics()).catch(gone),
  };
}
