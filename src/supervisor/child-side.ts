import type { EntryState, WaitsFor } from "../admission/fair-queue.ts";
import type { Addresses, AggregateStats, ChildMethods, ParentMethods, ProcessStats } from "./protocol.ts";
import { parentTimeoutMs } from "./protocol.ts";
import { createRpc } from "./rpc.ts";

/** The requests that wait in all processes, and the places at the backend that the parent shares out among them. */
export interface SharedPlaces {
  /** @param listener called at most once, if the request has to wait */
  enter(
    ticket: number,
    request: { keyId: number; waitsFor: WaitsFor },
    listener: SharedPlaceListener,
  ): Promise<EntryState>;
  leave(ticket: number): void;
}

interface SharedPlaceListener {
  onGranted(): void;
  onDisplaced(): void;
}

/** The channel of a child process to the supervisor that started it. */
export interface ParentChannel {
  /** Aborts when the parent requests a stop, or when the parent is gone. */
  stopRequested: AbortSignal;
  /** Lets the parent read the stats of this process. @returns the stats of all processes */
  shareStats(own: ProcessStats): AggregateStats;
  /** The places that all processes share. */
  places: SharedPlaces;
  /** Whether the processes may log one more refused request of a source. */
  mayLogShared(source: string): Promise<boolean>;
  reportListening(at: Addresses): void;
  reportDraining(): void;
  /** Resolves when the parent has the final metrics, or cannot be reached. */
  reportFinalMetrics(): Promise<void>;
}

/** @returns undefined if this process was not started by a supervisor */
export function findParentChannel(): ParentChannel | undefined {
  const send = process.send?.bind(process);
  if (send === undefined) return undefined;
  const stop = new AbortController();
  let stats: ProcessStats | undefined;
  /** What runs when a request no longer has to wait, by its ticket. */
  const waiting = new Map<number, SharedPlaceListener>();
  const methods: ChildMethods = {
    metrics: async () => (await stats?.metrics()) ?? [],
    inFlight: () => stats?.inFlight() ?? 0,
    running: () => stats?.running() ?? [],
    endRequest: (id) => stats?.endRequest(id) ?? false,
    ping() {},
    stop: () => stop.abort(),
    placeGranted(ticket) {
      waiting.get(ticket)?.onGranted();
      waiting.delete(ticket);
    },
    placeDisplaced(ticket) {
      waiting.get(ticket)?.onDisplaced();
      waiting.delete(ticket);
    },
  };
  const parent = createRpc<ParentMethods>(methods, send, parentTimeoutMs);
  process.on("message", parent.receive);
  process.on("disconnect", () => {
    parent.close();
    stop.abort();
  });
  const ignoreFailure = (): void => {};
  return {
    stopRequested: stop.signal,
    shareStats(own) {
      stats = own;
      return {
        metricsText: () => parent.call("metricsText"),
        inFlight: () => parent.call("inFlight"),
        running: () => parent.call("running"),
        endRequest: (id) => parent.call("endRequest", id),
      };
    },
    places: {
      async enter(ticket, { keyId, waitsFor }, listener) {
        waiting.set(ticket, listener);
        // A parent that does not reply has exited or is unresponsive: it must not stop the requests too.
        const withoutParent = waitsFor === "place" ? "granted" : "waiting";
        const state = await parent.call("enterQueue", ticket, keyId, waitsFor).catch(() => withoutParent);
        if (state !== "waiting") waiting.delete(ticket);
        return state;
      },
      leave(ticket) {
        waiting.delete(ticket);
        void parent.call("leaveQueue", ticket).catch(ignoreFailure);
      },
    },
    // A parent that does not reply hides no refusals.
    mayLogShared: (source) => parent.call("mayLogRefused", source).catch(() => true),
    // Only these two fields: the caller's object may hold functions, which cannot be sent.
    reportListening: ({ url, adminUrl }) => void parent.call("listening", { url, adminUrl }).catch(ignoreFailure),
    reportDraining: () => void parent.call("draining").catch(ignoreFailure),
    reportFinalMetrics: async () => parent.call("finalMetrics", await methods.metrics()).catch(ignoreFailure),
  };
}
