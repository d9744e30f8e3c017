import { api, responseBody } from "../client.ts";
import { beginSession } from "./session.ts";

/** Resumes the session in the browser's cookie. @throws ApiError with status 401 without a valid session */
export async function resumeSession(): Promise<void> {
  const me = await responseBody(api.me.get());
  beginSession({ username: me.username, csrfToken: me.csrf_token });
}

/** For pages that also work without a session. */
export const tryResumeSession = (): void => void resumeSession().catch(() => undefined);
