import type { Catalog } from "../domain/models.ts";
import type { AggregateStats, ProcessStats } from "../telemetry/stats.ts";
import { type Addresses, type ChildMethods, type ParentMethods, parentTimeoutMs } from "./protocol.ts";
import { createRpc } from "./rpc.ts";
import { createSharedPlaces } from "./shared-places.ts";

/** The channel of a child process to the supervisor that started it. */
export type ParentChannel = NonNullable<ReturnType<typeof findParentChannel>>;

/** @returns undefined if this process was not started by a supervisor */
export function findParentChannel() {
  const send = process.send?.bind(process);
  if (send === undefined) return undefined;
  const stop = new AbortController();
  let stats: ProcessStats | undefined;
  let takeCatalog = (_catalog: Catalog): void => {};
  const shared = createSharedPlaces({ call: (...call) => parent.call(...call) });
  const methods: ChildMethods = {
    metrics: async () => (await stats?.metrics()) ?? [],
    inFlight: () => stats?.inFlight() ?? 0,
    running: () => stats?.running() ?? [],
    endRequest: (id) => stats?.endRequest(id) ?? false,
    ping() {},
    stop: () => stop.abort(),
    catalogReplaced: (catalog) => takeCatalog(catalog),
    ...shared.methods,
  };
  const parent = createRpc<ParentMethods>(methods, send, parentTimeoutMs);
  process.on("message", parent.receive);
  process.on("disconnect", () => {
    parent.close();
    stop.abort();
  });
  const ignoreFailure = (): void => {};
  return {
    /** Aborts when the parent requests a stop, or when the parent is gone. */
    stopRequested: stop.signal,
    /** Lets the parent read the stats of this process. @returns the stats of all processes */
    shareStats(own: ProcessStats): AggregateStats {
      stats = own;
      return {
        metricsText: () => parent.call("metricsText"),
        inFlight: () => parent.call("inFlight"),
        running: () => parent.call("running"),
        endRequest: (id) => parent.call("endRequest", id),
      };
    },
    places: shared.places,
    /** The catalog that the parent has in use. @param onReplaced gets those that take its place later */
    readCatalog(onReplaced: (catalog: Catalog) => void): Promise<Catalog> {
      takeCatalog = onReplaced;
      return parent.call("catalog");
    },
    /** Whether the processes may log one more refused request of a source. A parent that does not reply hides none. */
    mayLogShared: (source: string): Promise<boolean> => parent.call("mayLogRefused", source).catch(() => true),
    machine: () => parent.call("machine"),
    // Only these two fields: the caller's object may hold functions, which cannot be sent.
    reportListening: ({ url, adminUrl }: Addresses) =>
      void parent.call("listening", { url, adminUrl }).catch(ignoreFailure),
    reportDraining: () => void parent.call("draining").catch(ignoreFailure),
    /** Resolves when the parent has the final metrics, or cannot be reached. */
    reportFinalMetrics: async () => parent.call("finalMetrics", await methods.metrics()).catch(ignoreFailure),
  };
}
