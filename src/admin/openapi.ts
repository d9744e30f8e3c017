import { toOpenAPISchema } from "@elysiajs/openapi";
import type { AnyElysia } from "elysia";

export type OpenApiDocument = Record<string, unknown>;

/** The document of an app's routes, from their own schemas. */
export function openApiDocument(app: AnyElysia): OpenApiDocument {
  const { paths, components } = toOpenAPISchema(app, { staticFile: false });
  return { openapi: "3.1.2", info: { title: "Tollgate admin API", version: "1" }, paths, components };
}
