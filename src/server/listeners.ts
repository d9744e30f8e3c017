import { createApp, createProxyApp, createSeparateAdminApp } from "./app.ts";
import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import { errorResponse } from "../proxy/errors.ts";
import { guardedRoutes } from "../proxy/routes.ts";
import { watchCertificate } from "../runtime/certificate.ts";
import { createConnections, type Listener, listen } from "../runtime/listen.ts";
import { adminSideOf } from "./admin-side.ts";
import type { Services } from "./services.ts";
import { proxySideOf } from "./proxy-side.ts";

export interface Listeners {
  proxy: Listener;
  admin: Listener;
}

/** One listener for both sides, or one for each where `ADMIN_PORT` says so. */
export async function listenOn(config: Config, parts: Services): Promise<Listeners> {
  const connections = createConnections();
  const proxy = proxySideOf(config, parts, connections);
  const shared = { shared: parts.shareStats !== undefined, internalError, certificate: parts.certificate };
  const atProxyPort = { ...shared, host: config.listen.host, port: config.listen.port, connections };
  if (config.listen.adminPort === undefined) {
    const app = createApp({ proxy, admin: await adminSideOf(config, parts, connections) });
    const listener = listen({ ...atProxyPort, ...guardedRoutes(proxy, app.fetch) });
    return { proxy: listener, admin: listener };
  }
  const adminConnections = createConnections();
  const adminApp = createSeparateAdminApp(await adminSideOf(config, parts, adminConnections));
  const atAdminPort = {
    ...shared,
    host: config.listen.adminHost,
    port: config.listen.adminPort,
    connections: adminConnections,
  };
  const admin = listen({ ...atAdminPort, fetch: adminApp.fetch });
  try {
    return { admin, proxy: listen({ ...atProxyPort, ...guardedRoutes(proxy, createProxyApp(proxy).fetch) }) };
  } catch (error) {
    await admin.cut();
    throw error;
  }
}

const internalError = (): Response => errorResponse("internal");

/** Serves a renewed certificate without a restart. @returns stops doing so */
export function followCertificate({ listen: { tls } }: Config, log: Log, listeners: Listeners): () => void {
  if (tls === undefined) return () => {};
  return watchCertificate(tls, {
    onChange(certificate) {
      for (const listener of new Set(Object.values(listeners))) listener.replaceCertificate(certificate);
      log.info("Certificate reloaded", { validTo: certificate.validTo.toISOString() });
    },
    onProblem: ({ message }) =>
      log.warn("Certificate files changed, and the earlier ones stay in use", { reason: message }),
  });
}
