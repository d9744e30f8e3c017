import type { AdminDeps } from "../http/deps.ts";
import { type Context, type ElysiaCustomStatusResponse, status } from "elysia";
import { findBearer } from "../../domain/credential.ts";
import type { ApiToken } from "../../store/accounts/contract.ts";
import { type Change, type Role, roles } from "../../domain/changes.ts";
import type { JsonObject } from "../http/body.ts";
import { ApiError, authenticationRequired } from "../http/errors.ts";
import type { Login } from "./login.ts";
import * as schema from "../http/schemas.ts";
import { clearedCookie, type CookieContext, hasSessionCookie, sessionCookie } from "./cookie.ts";
import type { LiveSession, Sessions } from "./session.ts";
import { msPerMinute } from "../../time/seoul.ts";
import { sha256Hex } from "./secrets.ts";
import { signInPath } from "./oidc.ts";
import type { AnonymousBody, LoginBody, LoginOffer, MeBody } from "./contract.ts";

/** Who does something, and from where; for the log. */
export interface Actor {
  username: string;
  address: string;
}

/** What a token begins with; an API key may do so too. */
export const tokenPrefix = "tgt_";

export type TokenDeps = Pick<AdminDeps, "store" | "clock" | "log">;

/** What a handler of a change gets: `by` records it. */
export interface ChangeContext {
  actor: Actor;
  by: Change;
}

/** What a handler gets that checks a body. */
export interface JsonContext extends ChangeContext {
  json: JsonObject | ApiError;
}

/** Who sends a request to a route that is not open. A token has no session. Elysia takes no interface. */
// oxlint-disable-next-line typescript/consistent-type-definitions -- see above
export type Caller = {
  actor: Actor;
  role: Role;
  session: LiveSession | undefined;
};

/**
 * Guard: requires a live session or token. Sends the session's cookie again, since its lifetime counts from the latest
 * request. A request with a session cookie is a session's, whatever else it carries: a browser may have sent it.
 * @throws ApiError 401
 */
export const requireActor =
  (deps: AdminDeps & { sessions: Pick<Sessions, "find"> }) =>
  async ({ request, cookie: { session: cookie } }: CookieContext): Promise<Caller> => {
    const address = deps.clientAddress(request);
    if (!hasSessionCookie(request.headers)) {
      const token = await findToken(request.headers, deps);
      if (token === undefined) throw authenticationRequired();
      return { actor: { username: `${token.name} (token)`, address }, role: token.role, session: undefined };
    }
    const session = await deps.sessions.find(request.headers);
    if (session === undefined) throw authenticationRequired();
    cookie?.set(sessionCookie(session));
    return { actor: { username: session.username, address }, role: session.role, session };
  };

/** The token of a request, if it is live. */
async function findToken(headers: Headers, { store, clock, log }: TokenDeps): Promise<ApiToken | undefined> {
  const bearer = findBearer(headers);
  if (bearer === undefined || !bearer.startsWith(tokenPrefix)) return undefined;
  const now = clock();
  const token = await store.tokens.find(sha256Hex(bearer), now);
  // Not awaited: a full disk does not keep programs out.
  if (token !== undefined && now - (token.lastUsedAt ?? 0) >= msPerMinute) {
    store.tokens
      .use(token.id, now)
      .catch((error: unknown) => log.warn("Use of a token not saved", { error: String(error) }));
  }
  return token;
}

/** Guard after `requireActor`: requires a session. @throws ApiError 403 */
export function requireSession({ session }: Pick<Caller, "session">): { session: LiveSession } {
  if (session === undefined) throw new ApiError(403, "This needs a session: an API token may not do it");
  return { session };
}

/** Guard: requires a role or a higher one. It comes after the CSRF token, and before body and row. @throws ApiError 403 */
export const requireRole =
  (least: Role) =>
  ({ role }: Pick<Caller, "role">): void => {
    if (roles.indexOf(role) < roles.indexOf(least)) throw new ApiError(403, `This needs the role ${least}`);
  };

/** What the login page offers beside the password. */
export const getLogin =
  ({ signIn }: AdminDeps) =>
  (): LoginOffer => ({
    provider:
      signIn === undefined ? null : { name: signIn.name, url: signIn.consoleUrl + signInPath, is_only: signIn.isOnly },
  });

export const logIn =
  ({ login, clientAddress }: AdminDeps & { login: Login }) =>
  async ({ request, cookie: { session: cookie } }: CookieContext): Promise<LoginBody> => {
    const session = await login(request, clientAddress(request));
    cookie?.set(sessionCookie(session));
    return { ok: true, username: session.username, csrf_token: session.csrfToken };
  };

export const logOut =
  ({ store, log }: AdminDeps) =>
  async ({
    session,
    actor,
    by,
    cookie: { session: cookie },
  }: Pick<Context, "cookie"> & ChangeContext & { session: LiveSession }): Promise<schema.OkBody> => {
    await store.sessions.delete(session.idHash, by);
    log.info(session.userId === null ? "Admin logged out" : "User logged out", { ...actor });
    cookie?.set(clearedCookie);
    return { ok: true };
  };

/** The role of who signed in at a provider. */
const roleHeader = "x-tollgate-role";

export const getMe =
  ({ sessions }: { sessions: Pick<Sessions, "find"> }) =>
  async ({
    request,
    set,
    cookie: { session: cookie },
  }: CookieContext & Pick<Context, "set">): Promise<MeBody | ElysiaCustomStatusResponse<401, AnonymousBody>> => {
    const session = await sessions.find(request.headers);
    if (session === undefined) return status(401, { authenticated: false });
    cookie?.set(sessionCookie(session));
    if (session.userId !== null) set.headers[roleHeader] = session.role;
    return { authenticated: true, username: session.username, csrf_token: session.csrfToken };
  };
