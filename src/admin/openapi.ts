import { toOpenAPISchema } from "@elysiajs/openapi";
import type { AnyElysia } from "elysia";

export type OpenApiDocument = Record<string, unknown>;

/** The document of an app's routes, from their own schemas. */
export function openApiDocument(app: AnyElysia): OpenApiDocument {
  const { paths, components } = toOpenAPISchema(app);
  return { openapi: "3.0.3", info: { title: "Tollgate admin API", version: "1" }, paths, components };
}
