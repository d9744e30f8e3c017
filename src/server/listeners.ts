import { type AdminAppDeps, createSharedApp, createSeparateAdminApp } from "./app.ts";
import type { Config } from "../config/config.ts";
import { errorResponse } from "../proxy/errors.ts";
import { gatewayRoutes, guardedRoutes, type Proxy } from "../proxy/gateway.ts";
import { type CertificateObserver, watchCertificate } from "../runtime/certificate.ts";
import { type Connections, createConnections, type Listener, listen } from "../runtime/listen.ts";
import type { Services } from "./services.ts";

export interface Listeners {
  proxy: Listener;
  admin: Listener;
}

/**
 * One listener for both sides, or one for each where `ADMIN_PORT` says so.
 * @param sides what answers over some connections
 */
export async function listenOn(
  { host, port, socketMode, adminHost, adminPort }: Config["listen"],
  sides: {
    proxy(connections: Connections): Proxy;
    admin(connections: Connections): Promise<AdminAppDeps>;
  },
  { shareStats, certificate }: Pick<Services, "shareStats" | "certificate">,
): Promise<Listeners> {
  const connections = createConnections();
  const proxy = sides.proxy(connections);
  const shared = { shared: shareStats !== undefined, internalError, certificate };
  const atProxyPort = { ...shared, host, port, socketMode, connections };
  if (adminPort === undefined) {
    const listener = listen({ ...atProxyPort, ...createSharedApp(proxy, await sides.admin(connections)) });
    return { proxy: listener, admin: listener };
  }
  const adminConnections = createConnections();
  const adminApp = createSeparateAdminApp(await sides.admin(adminConnections));
  const atAdminPort = { ...shared, host: adminHost, port: adminPort, connections: adminConnections };
  const admin = listen({ ...atAdminPort, fetch: adminApp.fetch });
  try {
    return { admin, proxy: listen({ ...atProxyPort, ...guardedRoutes(gatewayRoutes(proxy), proxy, proxy.handle) }) };
  } catch (error) {
    await admin.cut();
    throw error;
  }
}

const internalError = (): Response => errorResponse("internal");

/** Serves a renewed certificate without a restart. @returns stops doing so */
export function followCertificate(
  { tls }: Config["listen"],
  services: Pick<Services, "certificate" | "clock" | "log" | "metrics" | "facts">,
  listeners: Listeners,
): () => void {
  const { certificate: first, clock, log, metrics, facts } = services;
  if (tls === undefined || first === undefined) return () => {};
  metrics.servesCertificate(first);
  const observer: CertificateObserver = {
    onChange(certificate) {
      for (const listener of new Set(Object.values(listeners))) listener.replaceCertificate(certificate);
      metrics.servesCertificate(certificate);
      facts.servesCertificate(certificate);
      log.info("Certificate reloaded", { validTo: certificate.validTo.toISOString() });
    },
    onProblem: ({ message }) =>
      log.warn("Certificate files changed, and the earlier ones stay in use", { reason: message }),
  };
  return watchCertificate(tls, first, observer, { clock });
}
