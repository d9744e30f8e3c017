import { type AnyElysia, Elysia } from "elysia";
import { type ErrorCode, errorResponse } from "./errors.ts";
import { LifeOfRequest, type ProxyDeps } from "./life-of-request.ts";
import { openCodePath, respondToOpenCode } from "./request/own-answers.ts";
import { type GuardedRoutes, guardPaths, type Handler } from "./request/path.ts";
import { Users } from "./request/users.ts";
import { createStoredIds } from "./stored.ts";
import { createHabits } from "./stream/usage.ts";

export type Proxy = ReturnType<typeof createProxy>;

export const elysiaOptions = {
  // By default Elysia (1.4.30) looks for the path from a fixed offset of the URL, so that a short Host header shifts it.
  // Remove when the default handles every Host header.
  handler: { standardHostname: false },
  // `/v1` is not found; `/v1/` is forwarded.
  strictPath: true,
} as const;

/** `/v1` as routes. Nothing is set on the context, or Elysia (1.4.30) would decode a stream as text and encode it anew. */
export function gatewayRoutes({ handle }: Pick<Proxy, "handle">): AnyElysia {
  const untouched = { parse: "none", detail: { hide: true } } as const;
  return new Elysia(elysiaOptions)
    .onError(() => errorResponse("internal"))
    .all("/v1/*", ({ request }) => handle(request), untouched)
    .all("//v1/*", ({ request }) => handle(request), untouched);
}

/**
 * What the listener serves: what is below `/v1/` passes the path guard to the app that has `gatewayRoutes`, unless an invalid
 * Host made the URL relative (Bun 1.4.5), which Elysia would read as another path.
 * @param others serves all other paths
 */
export function guardedRoutes(app: Fetcher, { handle, refuse, publicUrl }: Proxy, others: Handler): GuardedRoutes {
  const guarded = guardPaths({
    handle: (request) => (request.url.startsWith("http") ? app.fetch(request) : handle(request)),
    others,
    refuse: (request) => refuse(request, "invalid_path"),
  });
  if (publicUrl === undefined) return guarded;
  return { ...guarded, routes: { ...guarded.routes, [openCodePath]: () => respondToOpenCode(publicUrl) } };
}

export interface Fetcher {
  fetch: Handler;
}

export function createProxy(deps: ProxyDeps) {
  const habitsOf = createHabits(deps.monotonic);
  const lifeDeps = {
    ...deps,
    habitsOf,
    storedIds: createStoredIds(deps),
    firstOfCodex: new Map(),
    users: new Users(deps),
  };
  return {
    /** The origin of `/v1` as clients see it; undefined: not set. */
    publicUrl: deps.config.publicUrl,
    handle: (request: Request): Promise<Response> => new LifeOfRequest(request, lifeDeps).handle(),
    /** Responds with an error to a request that gets no further than the listener. */
    refuse: (request: Request, code: ErrorCode): Response => new LifeOfRequest(request, lifeDeps).refuse(code),
  };
}
