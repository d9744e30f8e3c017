// The composition root: makes the services, mounts both sides over them, listens, and stops.
//
//   open the store -> services -> listen -> draining: new requests are refused -> cut, when the grace is over -> closed
//
// It keeps true: the database is open before a port is; if listening fails, the store is closed again. What runs may
// end within the grace; then counts are written, and the store is closed last. The proxy and the admin API meet here
// alone: `proxy-side.ts` and `admin-side.ts` hand each what it needs of the services (`services.ts`).
//
// Removed: a file of a few lines for each thing that starts, listens, samples or stops.

import { type AdminConfig, adminSideOf } from "./admin-side.ts";
import { type ProxyConfig, proxySideOf } from "./proxy-side.ts";
import type { Config } from "../config/config.ts";
import { listBackends } from "../domain/models.ts";
import { readCertificate } from "../runtime/certificate.ts";
import { startFetchThread } from "../runtime/bun-settings.ts";
import { prepareToListen } from "../runtime/listen.ts";
import { followCertificate, type Listeners, listenOn } from "./listeners.ts";
import { createServices, monotonic, type ServerOptions, type Services, type ServicesConfig } from "./services.ts";
import { openStore } from "../store/open.ts";
import { build } from "../config/version.ts";

/** Lets error frames and resets go out before the process does, to clients that read them. */
const lastWordsMs = 200;
/** Lets requests that were cut come to their end, with their error responses and their counts. */
const lastCountsMs = 2000;
/** Counts are given at least this time to be written, however much of the grace is left. */
const minWriteMs = 5000;
/** A start waits no longer for backends that are slow to list their models. */
const learnMs = 2000;

export type Server = Awaited<ReturnType<typeof startServer>>;

/** @param config each part of a server gets its own sections */
export async function startServer(
  config: ServicesConfig & ProxyConfig & AdminConfig & Pick<Config, "shutdownGraceMs">,
  options: ServerOptions,
) {
  const { clock, log } = options;
  const { listen, storage } = config;
  await prepareToListen(listen.host);
  const certificate = listen.tls === undefined ? undefined : readCertificate(listen.tls);
  await startFetchThread();
  const store = await openStore({ ...storage, clock, log });
  const services = createServices(config, { ...options, store, certificate });
  try {
    // Who comes first must not hear that there is no such model, nor be sent to a backend that drains.
    const { backendModels, sharedDraining } = services;
    await Promise.race([Promise.all([backendModels.known, sharedDraining.known]), Bun.sleep(learnMs)]);
    const listeners = await listenOn(
      listen,
      {
        proxy: (connections) => proxySideOf(config, services, connections),
        admin: (connections) => adminSideOf(config, services, connections),
      },
      services,
    );
    const stopWatching = followCertificate(listen, services, listeners);
    services.watch.start();
    // Several processes leave it to their parent to announce the address, once.
    const announce = options.shareStats === undefined ? log.info : log.debug;
    announce("Listening", {
      proxy: `${listeners.proxy.url}/v1`,
      console: listeners.admin.url,
      backend: listBackends(services.catalog.get()),
      version: build.version,
    });
    return {
      /** Where `/v1` answers. */
      url: listeners.proxy.url,
      /** Where `/api` and the console answer. */
      adminUrl: listeners.admin.url,
      /**
       * Refuses new requests, lets running ones finish within the grace, ends the rest as broken, and writes what is left.
       * @returns whether all counts were written
       */
      async stop(): Promise<boolean> {
        stopWatching();
        const leftMs = await drain(config.shutdownGraceMs, services, listeners);
        const isComplete = await closeServices(services, leftMs);
        log.info("Stopped");
        return isComplete;
      },
    };
  } catch (error) {
    await closeServices(services);
    throw error;
  }
}

/**
 * Refuses new requests, and ends the running ones: by themselves within the grace, or cut after it.
 * @returns what is left of the grace, in milliseconds
 */
async function drain(graceMs: number, services: Services, listeners: Listeners): Promise<number> {
  const graceEnds = monotonic() + graceMs;
  services.log.info("Stopping: running responses may finish", { graceMs });
  services.draining.abort();
  const all = [...new Set(Object.values(listeners))];
  const drained = Promise.all(all.map((listener) => listener.drain()));
  const inTime = await Promise.race([drained.then(() => true), Bun.sleep(graceMs).then(() => false)]);
  services.stopping.abort();
  if (!inTime) {
    // A busy machine takes its time to end them, and an error that is not written yet would not go out.
    await Promise.race([drained, idle(services).then(() => Bun.sleep(lastWordsMs))]);
    for (const listener of all) await listener.cut();
  }
  await idle(services);
  return graceEnds - monotonic();
}

const idle = ({ inFlight }: Pick<Services, "inFlight">): Promise<void> =>
  Promise.race([inFlight.idle(), Bun.sleep(lastCountsMs)]);

/** Writes what is left. @returns whether all counts were written, and will be found */
async function closeServices(services: Services, leftMs = 0): Promise<boolean> {
  const { recorder, ledger, admissions, revocations, store, metrics, log } = services;
  await services.stopPolling();
  services.facts.close();
  await services.notices.close();
  await services.watch.close();
  services.backendModels.stop();
  services.stopProbing();
  await Promise.race([recorder.close(), Bun.sleep(lastCountsMs)]);
  const isComplete = await ledger.close(Math.max(minWriteMs, leftMs));
  await admissions.close();
  await services.sharedDraining.close();
  revocations.close();
  const loss = await store.close();
  if (loss !== undefined) log.error("Counts are lost", { reason: loss });
  metrics.close();
  return isComplete && loss === undefined;
}
