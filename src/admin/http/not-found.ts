import { Elysia, type InternalRoute } from "elysia";
import { ApiError } from "./errors.ts";

const undocumented = { detail: { hide: true } };

const throwNotFound = (): never => {
  throw new ApiError(404, "Not found");
};

/**
 * Responds to requests that no route matches: 405 if the path has routes with other methods, 404 for any other path
 * under `/api`. Returns the plain type, which keeps these routes out of the console's client.
 */
export function notFoundRoutes(routes: readonly Pick<InternalRoute, "method" | "path">[]): Elysia {
  const app = new Elysia();
  for (const [path, matching] of Map.groupBy(routes, (route) => route.path)) {
    const allowed = new Set(matching.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])));
    const headers = { allow: [...allowed].join(", ") };
    const throwMethodNotAllowed = (): never => {
      throw new ApiError(405, "Method not allowed", headers);
    };
    app.all(path, throwMethodNotAllowed, undocumented);
  }
  for (const path of ["/api", "/api/*"]) app.all(path, throwNotFound, undocumented);
  return app;
}
