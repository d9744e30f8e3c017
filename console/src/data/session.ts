import { createSignal } from "solid-js";
import { readSetting, watchSetting, writeSetting } from "./browser-settings.ts";

export interface Session {
  username: string;
  csrfToken: string;
}

const [session, setSession] = createSignal<Session>();
export { session };

/**
 * Scripts cannot read the session cookie, so this setting records that one may exist. Without it, a first visit goes to
 * the login page at once, without a request that the server must refuse.
 */
const settingName = "session";

export const mayHaveSession = (): boolean => readSetting(settingName) !== undefined;

export const csrfToken = (): string => session()?.csrfToken ?? "";

export function beginSession(newSession: Session): void {
  writeSetting(settingName, "yes");
  setSession(newSession);
}

export function endSession(): void {
  writeSetting(settingName, undefined);
  setSession(undefined);
}

/**
 * All tabs share one cookie: after another tab logs out or in, this tab's CSRF token belongs to the old session.
 * @param resume loads the session of the current cookie
 */
export function syncSessionAcrossTabs(resume: () => void): void {
  watchSetting(settingName, (value) => (value === undefined ? setSession(undefined) : resume()));
}

/** Where to go after login: `next` if it is a path of this console, else the overview. */
export function safeRedirect(next: unknown): string {
  if (typeof next !== "string" || !next.startsWith("/") || /^\/[/\\]|^\/login|\p{Cc}/u.test(next)) return "/";
  return next;
}
