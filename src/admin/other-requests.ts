import { Elysia, type InternalRoute } from "elysia";
import { ApiError } from "./errors.ts";

const undocumented = { detail: { hide: true } };

const refuseUnknown = (): never => {
  throw new ApiError(404, "Not found");
};

/** Answers what no route takes: 405 on a path that has routes for other verbs, 404 on any other path under `/api`. */
export function refuseOtherRequests(routes: readonly Pick<InternalRoute, "method" | "path">[]): Elysia {
  const app = new Elysia();
  for (const [path, verbs] of Map.groupBy(routes, (route) => route.path)) {
    const allowed = new Set(verbs.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])));
    const headers = { allow: [...allowed].join(", ") };
    const refuse = (): never => {
      throw new ApiError(405, "Method not allowed", headers);
    };
    app.all(path, refuse, undocumented);
  }
  app.all("/api", refuseUnknown, undocumented);
  app.all("/api/*", refuseUnknown, undocumented);
  // Typed as if it had no routes: these would hide those of the API from whoever reads its type.
  return app;
}
