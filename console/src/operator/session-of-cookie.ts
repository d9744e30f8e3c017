import { api, responseBody } from "../client.ts";
import { beginSessionFrom, type Session } from "../lib/session.ts";

/** Resumes the session in the browser's cookie. @throws ApiError with status 401 without a valid session */
export const resumeSession = (): Promise<void> => beginSessionFrom(loadSession);

async function loadSession(): Promise<Session> {
  const call = api.me.get();
  const me = await responseBody(call);
  const { response } = await call;
  const role = response.headers.get("x-tollgate-role") ?? undefined;
  return { username: me.username, csrfToken: me.csrf_token, role };
}

/** Serves pages that also work without a session. */
export const tryResumeSession = (): void => void resumeSession().catch(() => undefined);
