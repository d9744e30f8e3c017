import { Elysia } from "elysia";
import { wasReadToEnd } from "../admin/http/body.ts";
import { malformedHostResponse } from "../admin/http/errors.ts";
import { adminRoutes } from "../admin/routes.ts";
import type { AdminDeps } from "../admin/http/deps.ts";
import { consoleRoutes } from "./console-files.ts";
import { errorResponse } from "../proxy/errors.ts";
import { isHalfSent } from "../proxy/request/half-sent.ts";
import { type GuardedRoutes, isHost, isPathWithoutV1, loggedPath } from "../proxy/request/path.ts";
import { elysiaOptions, type Fetcher, gatewayRoutes, guardedRoutes, type Proxy } from "../proxy/gateway.ts";

export interface AdminAppDeps extends AdminDeps {
  /** Browsers shall use nothing else. */
  isHttps: boolean;
  /** See `Connections`. */
  closeSoon: (request: Request) => void;
}

/** The type that the console's client is made from. */
export type App = ReturnType<typeof createAdminApp>;

/** The admin API and the console. */
function createAdminApp(deps: AdminDeps) {
  return new Elysia(elysiaOptions).use(adminRoutes(deps)).use(consoleRoutes());
}

/** Both halves on one port. */
export function createSharedApp(proxy: Proxy, admin: AdminAppDeps): GuardedRoutes {
  const others = guardAdmin(createAdminApp(admin), admin);
  const handleOther = (request: Request) => (isForProxy(request) ? proxy.handle(request) : others.fetch(request));
  // An app of its own, or Elysia would read the cookies of each request.
  return guardedRoutes(gatewayRoutes(proxy), proxy, handleOther);
}

/**
 * Such as `/v1` itself, or a path without it. With an invalid Host, a URL is only its path. Remove when `request.url` is
 * absolute then too (Bun 1.4.5).
 */
function isForProxy(request: Request): boolean {
  return /^(?:https?:\/\/[^/]*)?\/+v1(?:[/?]|$)/.test(request.url) || isPathWithoutV1(request);
}

/** The admin API and the console, for a port of their own. Without the 404s, the console would serve its page under `/v1`. */
export function createSeparateAdminApp(deps: AdminAppDeps): Fetcher {
  const notFound = (): Response => errorResponse("not_found");
  const hidden = { detail: { hide: true } };
  const app = new Elysia(elysiaOptions)
    .all("/v1", notFound, hidden)
    .all("/v1/*", notFound, hidden)
    .use(createAdminApp(deps));
  return guardAdmin(app, deps);
}

/** A year (RFC 6797). Not for subdomains: they may be other services. */
const hsts = "max-age=31536000";

/** What surrounds every request of the admin side. Responses under `/v1` have the backend's headers, and the proxy's errors. */
function guardAdmin(
  app: Fetcher,
  { log, clientAddress, isHttps, closeSoon }: Pick<AdminAppDeps, "log" | "clientAddress" | "isHttps" | "closeSoon">,
): Fetcher {
  return {
    async fetch(request) {
      // An address such as `[:]` or `1.2.3.256` has the form of a host, but no URL parser takes it.
      if (!isHost(request.headers.get("host")) || !URL.canParse(request.url)) {
        const fields = { address: clientAddress(request), path: loggedPath(request) };
        log.info("Request refused: Host header missing or malformed", fields);
        return malformedHostResponse();
      }
      const response = await app.fetch(request);
      // Who is refused before the end of the request does not keep the connection.
      if (response.status >= 400 && !wasReadToEnd(request) && (await isHalfSent(request))) closeSoon(request);
      if (isHttps) response.headers.set("strict-transport-security", hsts);
      return response;
    },
  };
}
