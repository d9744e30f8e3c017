import type { Log } from "../../log/log.ts";
import type { Actor } from "./auth.ts";
import { type JsonObject, readJsonObject } from "../http/body.ts";
import { ApiError, databaseUnavailable } from "../http/errors.ts";
import { equalSecrets } from "./secrets.ts";
import type { LiveSession } from "./session.ts";

interface CsrfContext {
  request: Request;
  path: string;
  session: LiveSession | undefined;
  actor: Actor;
}

/**
 * Guard: requires the session's CSRF token in the header X-CSRF-Token or, if that is missing, in the body's `_csrf`. No
 * browser sends an API token by itself, so a request without a session needs none.
 * @returns the body that it read; a body that could not be read holds no token, and with a token in the header its
 * failure is the route's to report or to ignore
 * @throws ApiError 403, or 503 for a session that only reads
 */
export const requireCsrfToken =
  ({ log }: { log: Log }) =>
  async ({ request, path, session, actor }: CsrfContext): Promise<{ json: JsonObject | ApiError }> => {
    if (session === undefined) return { json: await readJsonObject(request) };
    if (session.isRemembered === true) throw databaseUnavailable();
    const refuse = (): never => {
      const { method } = request;
      log.warn("Admin request refused: CSRF token missing or invalid", { ...actor, method, path });
      throw new ApiError(403, "CSRF token missing or invalid");
    };
    const header = request.headers.get("x-csrf-token");
    if (header !== null && !equalSecrets(header, session.csrfToken)) refuse();
    const json = await readJsonObject(request);
    if (header === null && !equalSecrets(tokenIn(json), session.csrfToken)) refuse();
    return { json };
  };

/** An empty string if there is none: no session's token is empty. */
function tokenIn(body: JsonObject | ApiError): string {
  const token = body instanceof ApiError ? undefined : body["_csrf"];
  return typeof token === "string" ? token : "";
}
