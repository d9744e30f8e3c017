import { api, responseBody } from "../client.ts";
import { beginSession } from "./session.ts";

/** Goes on with the session that the browser's cookie holds. @throws ApiError, a 401 where it holds none */
export async function resumeSession(): Promise<void> {
  const me = await responseBody(api.me.get());
  beginSession({ username: me.username, csrfToken: me.csrf_token });
}

/** For a page that is well without one. */
export const tryResumeSession = (): void => void resumeSession().catch(() => undefined);
