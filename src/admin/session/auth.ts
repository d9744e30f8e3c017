import { type Context, type ElysiaCustomStatusResponse, status } from "elysia";
import type { Log } from "../../log/log.ts";
import { authenticationRequired } from "../http/errors.ts";
import type { Login } from "./login.ts";
import type { OkBody } from "../http/schemas.ts";
import { clearedCookie, sessionCookie } from "./cookie.ts";
import type { LiveSession, Sessions } from "./session.ts";
import type { AnonymousBody, LoginBody, MeBody } from "./contract.ts";

type CookieContext = Pick<Context, "request" | "cookie">;

/** Who does something, and from where; for the log. */
export interface Actor {
  username: string;
  address: string;
}

interface SessionGuardDeps {
  sessions: Pick<Sessions, "find">;
  clientAddress: (request: Request) => string;
}

/**
 * Guard: requires a live session, and sends its cookie again, since its lifetime counts from the latest request.
 * @throws ApiError 401
 */
export const requireSession =
  ({ sessions, clientAddress }: SessionGuardDeps) =>
  async ({ request, cookie: { session: cookie } }: CookieContext): Promise<{ session: LiveSession; actor: Actor }> => {
    const session = await sessions.find(request.headers);
    if (session === undefined) throw authenticationRequired();
    cookie?.set(sessionCookie(session.cookieValue));
    return { session, actor: { username: session.username, address: clientAddress(request) } };
  };

export const logIn =
  ({ login, clientAddress }: { login: Login; clientAddress: (request: Request) => string }) =>
  async ({ request, cookie: { session: cookie } }: CookieContext): Promise<LoginBody> => {
    const session = await login(request, clientAddress(request));
    cookie?.set(sessionCookie(session.cookieValue));
    return { ok: true, username: session.username, csrf_token: session.csrfToken };
  };

export const logOut =
  ({ sessions, log }: { sessions: Pick<Sessions, "end">; log: Log }) =>
  async ({
    session,
    actor,
    cookie: { session: cookie },
  }: Pick<Context, "cookie"> & { session: LiveSession; actor: Actor }): Promise<OkBody> => {
    await sessions.end(session);
    log.info("Admin logged out", { ...actor });
    cookie?.set(clearedCookie);
    return { ok: true };
  };

export const getMe =
  ({ sessions }: { sessions: Pick<Sessions, "find"> }) =>
  async ({
    request,
    cookie: { session: cookie },
  }: CookieContext): Promise<MeBody | ElysiaCustomStatusResponse<401, AnonymousBody>> => {
    const session = await sessions.find(request.headers);
    if (session === undefined) return status(401, { authenticated: false });
    cookie?.set(sessionCookie(session.cookieValue));
    return { authenticated: true, username: session.username, csrf_token: session.csrfToken };
  };
