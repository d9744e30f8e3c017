import type { MonotonicClock } from "../../time/clock.ts";
import type { Backend, CurrentCatalog } from "../../domain/models.ts";
import { countConnecting, addressOf, connectTo, type ConnectTimeout, createConnectTimeout } from "./connect-timeout.ts";
import { createConnectionPools } from "./connection-pool.ts";
import { createForward, createRunningCalls, type Forward, type ForwardDeps, type RunningCallsDeps } from "./forward.ts";
import { countProbes, serverOf } from "./probe.ts";

/** What sends to each backend. */
export interface Forwards {
  get(backend: Address): Forward;
}

type Address = Pick<Backend, "url" | "baseUrl" | "socket">;

const connectTimeoutMs = 10_000;

/** Made when a backend is first used, and kept for as long as its address is in the catalog. */
export function createForwards(
  deps: Pick<ForwardDeps, "fetch" | "startReadTimeout"> &
    RunningCallsDeps & {
      catalog: CurrentCatalog;
      monotonic: MonotonicClock;
    },
): Forwards {
  const { catalog, fetch, startReadTimeout, monotonic } = deps;
  const running = createRunningCalls(deps);
  const poolOf = createConnectionPools(monotonic);
  const forwards = new Map<string, Forward>();
  /** By where they connect to: backends may share a server. */
  const connectTimeouts = new Map<string, ConnectTimeout>();
  catalog.onReplaced(({ backends }) => {
    const urls = new Set(backends.map(({ url }) => url));
    for (const url of forwards.keys()) if (!urls.has(url)) forwards.delete(url);
    const servers = new Set(backends.map(serverOf));
    for (const server of connectTimeouts.keys()) if (!servers.has(server)) connectTimeouts.delete(server);
  });

  function connectTimeoutOf(backend: Address): ConnectTimeout {
    const server = serverOf(backend);
    const known = connectTimeouts.get(server);
    if (known !== undefined) return known;
    const address = addressOf(backend.baseUrl, backend.socket);
    const made = createConnectTimeout({
      connect: connectTo(address),
      countConnecting: async () => ("port" in address ? await countConnecting(address.port, address.host) : undefined),
      countOthers: () => countProbes(server),
      limitMs: connectTimeoutMs,
      monotonic,
    });
    connectTimeouts.set(server, made);
    return made;
  }

  return {
    get(backend) {
      const known = forwards.get(backend.url);
      if (known !== undefined) return known;
      const { url, baseUrl, socket } = backend;
      const pool = poolOf(baseUrl, socket);
      const made = createForward({
        baseUrl,
        socket,
        fetch,
        pool,
        connectTimeout: connectTimeoutOf(backend),
        startReadTimeout,
        running,
      });
      forwards.set(url, made);
      return made;
    },
  };
}
