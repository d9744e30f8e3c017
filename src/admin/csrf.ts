import { type JsonObject, readJsonObject } from "./body.ts";
import { ApiError } from "./errors.ts";
import { equalSecrets } from "./secrets.ts";

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * The body of a request that carries its session's CSRF token, in the header X-CSRF-Token or, where that is missing,
 * in the body's `_csrf`. A body that cannot be read holds no token; where the header does, its refusal is for the
 * route to give, or to ignore.
 * @throws ApiError 403
 */
export async function readUnforgedBody(request: Request, csrfToken: string): Promise<JsonObject | ApiError> {
  if (safeMethods.has(request.method)) return {};
  const header = request.headers.get("x-csrf-token");
  if (header !== null && !equalSecrets(header, csrfToken)) throw forged();
  const body = await readJsonObject(request);
  if (header === null && !equalSecrets(tokenIn(body), csrfToken)) throw forged();
  return body;
}

const forged = () => new ApiError(403, "CSRF token missing or invalid");

/** No session's token is the empty one. */
function tokenIn(body: JsonObject | ApiError): string {
  const token = body instanceof ApiError ? undefined : body["_csrf"];
  return typeof token === "string" ? token : "";
}
