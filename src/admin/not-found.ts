import { Elysia, type InternalRoute } from "elysia";
import { ApiError } from "./errors.ts";

const undocumented = { detail: { hide: true } };

const refuseUnknown = (): never => {
  throw new ApiError(404, "Not found");
};

/**
 * Answers what no route takes: 405 on a path that has routes for other verbs, 404 on any other path under `/api`.
 * The plain type keeps these routes out of the console's client.
 */
export function refuseOtherRequests(routes: readonly Pick<InternalRoute, "method" | "path">[]): Elysia {
  const app = new Elysia();
  for (const [path, verbs] of Map.groupBy(routes, (route) => route.path)) {
    const allowed = new Set(verbs.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])));
    const headers = { allow: [...allowed].join(", ") };
    const refuseVerb = (): never => {
      throw new ApiError(405, "Method not allowed", headers);
    };
    app.all(path, refuseVerb, undocumented);
  }
  for (const path of ["/api", "/api/*"]) app.all(path, refuseUnknown, undocumented);
  return app;
}
