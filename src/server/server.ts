import type { Config } from "../config/config.ts";
import { readCertificate } from "../runtime/certificate.ts";
import { startFetchThread } from "../runtime/fetch-thread.ts";
import { prepareToListen } from "../runtime/listen.ts";
import { closeParts, drain } from "./ending.ts";
import { followCertificate, listenOn } from "./listeners.ts";
import { createServices, type ServerOptions } from "./services.ts";
import { openStore } from "../store/open.ts";
import { build } from "../config/version.ts";

export interface Server {
  /** Where `/v1` answers. */
  url: string;
  /** Where `/api` and the console answer. */
  adminUrl: string;
  /**
   * Refuses new requests, lets running ones finish within the grace, ends the rest as broken, and writes what is left.
   * @returns whether all counts were written
   */
  stop(): Promise<boolean>;
}

export async function startServer(config: Config, options: ServerOptions): Promise<Server> {
  const { clock, log } = options;
  const { dataDir, databaseUrl, retention } = config.storage;
  await prepareToListen(config.listen.host);
  const certificate = config.listen.tls === undefined ? undefined : readCertificate(config.listen.tls);
  await startFetchThread();
  const store = await openStore({ dataDir, databaseUrl, retention, clock, log });
  const parts = createServices(config, { ...options, store, certificate });
  try {
    const listeners = await listenOn(config, parts);
    const stopWatching = followCertificate(config, log, listeners);
    // Of several processes none announces the address that their parent announces for them all.
    const announce = options.shareStats === undefined ? log.info : log.debug;
    announce("Listening", {
      proxy: `${listeners.proxy.url}/v1`,
      console: listeners.admin.url,
      backend: config.upstream.name,
      version: build.version,
    });
    return {
      url: listeners.proxy.url,
      adminUrl: listeners.admin.url,
      async stop() {
        stopWatching();
        const leftMs = await drain(config.shutdownGraceMs, parts, listeners);
        const isComplete = await closeParts(parts, leftMs);
        log.info("Stopped");
        return isComplete;
      },
    };
  } catch (error) {
    await closeParts(parts);
    throw error;
  }
}
