import { createSignal } from "solid-js";
import { readSetting, watchSetting, writeSetting } from "./browser-settings.ts";

export interface Session {
  username: string;
  csrfToken: string;
}

const [session, setSession] = createSignal<Session>();
export { session };

/**
 * The cookie cannot be seen from here, so a mark tells whether there may be one. Without it a first visit goes to the
 * login page at once, and asks the server nothing that it must refuse.
 */
const markName = "session";

export const mayHaveSession = (): boolean => readSetting(markName) !== undefined;

export const csrfToken = (): string => session()?.csrfToken ?? "";

export function beginSession(begun: Session): void {
  writeSetting(markName, "yes");
  setSession(begun);
}

export function endSession(): void {
  writeSetting(markName, undefined);
  setSession(undefined);
}

/**
 * All tabs share one cookie: where another one logs out or in, this one's CSRF token is an old session's.
 * @param resume asks for the session that the cookie holds now
 */
export function syncSessionAcrossTabs(resume: () => void): void {
  watchSetting(markName, (mark) => (mark === undefined ? setSession(undefined) : resume()));
}

/** Where to go after login: an address of this console alone, whatever a link to the login page says. */
export function safeRedirect(next: unknown): string {
  if (typeof next !== "string" || !next.startsWith("/") || /^\/[/\\]|^\/login|\p{Cc}/u.test(next)) return "/";
  return next;
}
