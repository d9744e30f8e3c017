import { Elysia } from "elysia";
import { type AdminDeps, adminRoutes } from "./admin/routes.ts";
import { consoleRoutes } from "./console-files.ts";
import { errorResponse } from "./proxy/errors.ts";
import { isPathWithoutV1 } from "./proxy/request/target.ts";
import { type Proxy, proxyRoutes } from "./proxy/routes.ts";

export interface AppDeps {
  admin: AdminDeps;
  proxy: Proxy;
}

/** What the console's typed client is made from. */
export type App = ReturnType<typeof createAdminApp>;

const options = {
  // Elysia routes by the Host header unless told otherwise (1.4.30): a short one shifts the path.
  // Remove when it routes by the path only.
  handler: { standardHostname: false },
  // `/v1` is nothing, `/v1/` is the backend's.
  strictPath: true,
} as const;

/** The admin API and the console. */
export function createAdminApp(deps: AdminDeps) {
  return new Elysia(options).use(adminRoutes(deps)).use(consoleRoutes());
}

/**
 * Both sides on one port, as two apps: in one, Elysia has every request pay for the cookies and hooks of the admin API,
 * which is a seventh of what a small completion costs.
 * Remove when a route without cookies and hooks costs the same in an app that has them (Elysia 1.4.30).
 */
export function createApp({ admin, proxy }: AppDeps): Fetcher {
  const [proxyApp, adminApp] = [createProxyApp(proxy), createAdminApp(admin)];
  return { fetch: (request) => (isForProxy(request) ? proxyApp : adminApp).fetch(request) };
}

/** With an invalid Host, a URL is only its path. Remove when `request.url` is absolute then too (Bun 1.4.5). */
function isForProxy(request: Request): boolean {
  return /^(?:https?:\/\/[^/]*)?\/+v1(?:[/?]|$)/.test(request.url) || isPathWithoutV1(request);
}

/** `/v1` alone. */
export function createProxyApp(proxy: Proxy): Fetcher {
  return new Elysia(options).use(proxyRoutes(proxy));
}

/** All but `/v1`, for a port of its own: there the console must not take those paths for pages of its own. */
export function createSeparateAdminApp(deps: AdminDeps): Fetcher {
  const nothing = (): Response => errorResponse("not_found");
  return new Elysia(options).all("/v1", nothing).all("/v1/*", nothing).use(createAdminApp(deps));
}

export interface Fetcher {
  fetch(request: Request): Response | Promise<Response>;
}
