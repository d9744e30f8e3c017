import { toOpenAPISchema } from "@elysiajs/openapi";
import { FormatRegistry } from "@sinclair/typebox";
import type { AnyElysia } from "elysia";
import { isDay } from "../../time/seoul.ts";

// The package of the first line has put a check in place that makes a schema for each value: the 2000 days of a page of costs held
// every stream for 50 ms. Remove when it leaves the formats of others alone (1.4.16).
FormatRegistry.Set("date", isDay);

const securitySchemes = {
  session: { type: "apiKey", in: "cookie", name: "session" },
  csrf: { type: "apiKey", in: "header", name: "X-CSRF-Token", description: "Or the field _csrf of a JSON body" },
  bearer: { type: "http", scheme: "bearer", description: "An API key" },
  xApiKey: { type: "apiKey", in: "header", name: "x-api-key", description: "An API key" },
  token: { type: "http", scheme: "bearer", description: "An API token (`tgt_…`); its role, or a higher one" },
  metricsToken: { type: "http", scheme: "bearer", description: "METRICS_TOKEN" },
};

const textSchema = { schema: { type: "string" } } as const;

export type OpenApiDocument = Record<string, unknown>;

/** The OpenAPI document of an app's routes, made from their contracts. */
export function openApiDocument(app: AnyElysia): OpenApiDocument {
  const { paths, components } = toOpenAPISchema(app, { staticFile: false });
  for (const path of Object.values(paths)) {
    const { parameters = [], responses: { 200: ok, 304: known } = {} } = path?.get ?? {};
    // The package puts the schema of nothing where content types belong (1.4.16). Remove when it does not.
    if (known !== undefined && "content" in known) delete known.content;
    const isCsv = parameters.some((one) => "name" in one && one.name === "format");
    // The package knows one content type for each response.
    if (isCsv && ok !== undefined && "content" in ok) ok.content = { ...ok.content, "text/csv": textSchema };
  }
  return {
    openapi: "3.1.2",
    info: { title: "Tollgate admin API", version: "1" },
    security: [{ session: [] }],
    paths,
    components: { ...components, securitySchemes },
  };
}
