import { Elysia, type InternalRoute } from "elysia";
import { ApiError } from "./errors.ts";

/** Answers what no route takes: 405 on a path that has routes for other verbs, 404 on any other path under `/api`. */
export function refuseOtherRequests(routes: readonly Pick<InternalRoute, "method" | "path">[]): Elysia {
  const app = new Elysia();
  for (const [path, verbs] of Map.groupBy(routes, (route) => route.path)) {
    const allowed = new Set(verbs.flatMap(({ method }) => (method === "GET" ? ["GET", "HEAD"] : [method])));
    const headers = { allow: [...allowed].join(", ") };
    app.all(path, () => {
      throw new ApiError(405, "Method not allowed", headers);
    });
  }
  for (const path of ["/api", "/api/*"]) {
    app.all(path, () => {
      throw new ApiError(404, "Not found");
    });
  }
  return app;
}
