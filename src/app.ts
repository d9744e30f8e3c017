import { Elysia } from "elysia";
import { type AdminDeps, adminRoutes } from "./admin/routes.ts";
import { consoleRoutes } from "./console.ts";
import { errorResponse } from "./proxy/errors.ts";
import { type Proxy, proxyRoutes } from "./proxy/routes.ts";

export interface AppDeps {
  admin: AdminDeps;
  proxy: Proxy;
}

/** What the console's typed client is made from. */
export type App = ReturnType<typeof createAdminApp>;

/** Elysia routes by the Host header unless told otherwise (1.4.30): a short one shifts the path. */
const options = { handler: { standardHostname: false } } as const;

/** Both sides on one port. */
export function createApp({ admin, proxy }: AppDeps): Fetcher {
  return new Elysia(options).use(proxyRoutes(proxy)).use(createAdminApp(admin));
}

/** `/v1` alone, for a port of its own. */
export function createProxyApp(proxy: Proxy): Fetcher {
  return new Elysia(options).use(proxyRoutes(proxy)).all("/*", ({ request }) => proxy.refuse(request, "not_found"));
}

/** The admin API and the console, without `/v1`. */
export function createAdminApp(deps: AdminDeps) {
  return new Elysia(options)
    .use(adminRoutes(deps))
    .all("/v1", () => errorResponse("not_found"))
    .all("/v1/*", () => errorResponse("not_found"))
    .use(consoleRoutes());
}

export interface Fetcher {
  fetch(request: Request): Response | Promise<Response>;
}
