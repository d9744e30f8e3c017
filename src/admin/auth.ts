import { type Context, type ElysiaCustomStatusResponse, status } from "elysia";
import { authenticationRequired } from "./errors.ts";
import type { Login } from "./login.ts";
import type { AnonymousBody, LoginBody, MeBody, OkBody } from "./schemas.ts";
import { clearedCookie, sessionCookie } from "./session-cookie.ts";
import type { LiveSession, Sessions } from "./session.ts";

type CookieContext = Pick<Context, "request" | "cookie">;

/**
 * Guard: requires a live session, and sends its cookie again, since its lifetime counts from the latest request.
 * @throws ApiError 401
 */
export const requireSession =
  ({ sessions }: { sessions: Pick<Sessions, "find"> }) =>
  async ({ request, cookie: { session: cookie } }: CookieContext): Promise<{ session: LiveSession }> => {
    const session = await sessions.find(request.headers);
    if (session === undefined) throw authenticationRequired();
    cookie?.set(sessionCookie(session.cookieValue));
    return { session };
  };

export const logIn =
  ({ login, clientAddress }: { login: Login; clientAddress: (request: Request) => string }) =>
  async ({ request, cookie: { session: cookie } }: CookieContext): Promise<LoginBody> => {
    const session = await login(request, clientAddress(request));
    cookie?.set(sessionCookie(session.cookieValue));
    return { ok: true, username: session.username, csrf_token: session.csrfToken };
  };

export const logOut =
  ({ sessions }: { sessions: Pick<Sessions, "end"> }) =>
  async ({
    session,
    cookie: { session: cookie },
  }: Pick<Context, "cookie"> & { session: LiveSession }): Promise<OkBody> => {
    await sessions.end(session);
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
