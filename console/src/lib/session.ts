import { createSignal } from "solid-js";
import { readSetting, watchSetting, writeSetting } from "./browser-settings.ts";

export interface Session {
  username: string;
  csrfToken: string;
  /** Of who signed in at a provider; undefined: the administrator, by the password. */
  role?: string | undefined;
}

const [session, setSession] = createSignal<Session>();
export { session };

/**
 * Scripts cannot read the session cookie, so this setting records that one may exist. Without it, a first visit goes to
 * the login page at once, without a request that the server must refuse.
 */
const settingName = "session";

/** Known before the session is resumed: a member has one page. */
export const isMember = (): boolean => (session()?.role ?? readSetting(settingName)) === "member";

export const mayHaveSession = (): boolean => readSetting(settingName) !== undefined;

let resuming: Promise<unknown> = Promise.resolve();

/** Begins the session that `load` returns. @throws what `load` throws */
export async function beginSessionFrom(load: () => Promise<Session>): Promise<void> {
  const loading = load().then(beginSession);
  resuming = loading.catch(() => undefined);
  await loading;
}

/** Pages render before the session is resumed, so the token may have to wait for that. Empty without a session. */
export async function csrfToken(): Promise<string> {
  await resuming;
  return session()?.csrfToken ?? "";
}

export function beginSession(newSession: Session): void {
  writeSetting(settingName, newSession.role ?? "yes");
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
