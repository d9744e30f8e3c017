import type { Context } from "elysia";

/** What a handler needs that reads or sets cookies. */
export type CookieContext = Pick<Context, "request" | "cookie">;

export const sessionLifetimeSeconds = 365 * 24 * 60 * 60;
/** Of who signed in at a provider, which is asked again afterwards. It is not extended. */
export const personLifetimeSeconds = 12 * 60 * 60;

const attributes = { httpOnly: true, secure: true, sameSite: "lax", path: "/" } as const;

export const sessionCookie = ({ cookieValue: value, maxAge }: { cookieValue: string; maxAge: number }) => ({
  ...attributes,
  value,
  maxAge,
});

export const clearedCookie = sessionCookie({ cookieValue: "", maxAge: 0 });

/** More than a browser gathers, and few enough that a request full of them costs little to check. */
const maxCookies = 8;

/**
 * The decoded values of all cookies named `session`. There may be several: an application on a parent domain may use
 * the name too, and the browser sends the older cookie first.
 */
export function sessionCookiesIn(headers: Headers): string[] {
  const cookies = (headers.get("cookie") ?? "").split(";").map((cookie) => cookie.trim());
  return cookies
    .filter((cookie) => cookie.startsWith("session="))
    .slice(0, maxCookies)
    .flatMap((cookie) => findDecoded(cookie.slice("session=".length)) ?? []);
}

/** Whether it is a session's request, with a live session or none. */
export const hasSessionCookie = (headers: Headers): boolean => /(?:^|;)\s*session=/.test(headers.get("cookie") ?? "");

function findDecoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}
