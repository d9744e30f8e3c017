import { signCookie, unsignCookie } from "elysia/utils";
import type { WallClock } from "../time/clock.ts";
import type { Log } from "../log/log.ts";
import type { Store } from "../store/store.ts";
import { randomHex, sha256Hex } from "./secrets.ts";

const lifetimeSeconds = 365 * 24 * 60 * 60;

/** The row's expiry slides in steps, so that a console that polls does not write on every request. */
const slideStepMs = 60_000;

export interface LiveSession {
  idHash: string;
  csrfToken: string;
  username: string;
  /** The cookie as it came, to be sent again: its lifetime counts from the latest request. */
  cookieValue: string;
}

export interface Sessions {
  /** A cookie that is forged, cut, foreign, expired or logged out is no session; nothing about it is an error. */
  find(headers: Headers): Promise<LiveSession | undefined>;
  /** Always under a new id, whatever the browser came with. */
  start(): Promise<LiveSession>;
  end(session: LiveSession): Promise<void>;
}

export interface SessionDeps {
  store: Pick<Store, "sessions">;
  config: { username: string };
  signingKey: string;
  clock: WallClock;
  log: Log;
}

export function createSessions({ store, config, signingKey, clock, log }: SessionDeps): Sessions {
  const expiry = () => clock() + lifetimeSeconds * 1000;

  function slide(idHash: string, expiresAt: number): void {
    if (expiry() - expiresAt < slideStepMs) return;
    // Nobody waits for it: a full disk must not close the console, and the next request tries again.
    store.sessions
      .extend(idHash, expiry())
      .catch((error: unknown) => log.warn("a session's expiry was not written", { error: String(error) }));
  }

  async function findBy(cookieValue: string): Promise<LiveSession | undefined> {
    const id = await unsignCookie(cookieValue, signingKey);
    if (typeof id !== "string") return undefined;
    const idHash = sha256Hex(id);
    const row = await store.sessions.find(idHash, clock());
    // A renamed admin is another user.
    if (row === undefined || row.username !== config.username) return undefined;
    slide(idHash, row.expiresAt);
    return { idHash, csrfToken: row.csrfToken, username: row.username, cookieValue };
  }

  return {
    async find(headers) {
      for (const cookieValue of sessionCookiesIn(headers)) {
        const session = await findBy(cookieValue);
        if (session !== undefined) return session;
      }
      return undefined;
    },

    async start() {
      const id = randomHex(32);
      const session = { csrfToken: randomHex(32), username: config.username };
      await store.sessions.create(sha256Hex(id), { ...session, expiresAt: expiry() });
      return { ...session, idHash: sha256Hex(id), cookieValue: await signCookie(id, signingKey) };
    },

    end: ({ idHash }) => store.sessions.delete(idHash),
  };
}

/** More than a browser gathers, and so few that a stranger's head full of them costs little. */
const mostCookies = 8;

/** An application on a parent domain may call its cookie `session` too, and the browser sends whichever is older first. */
function sessionCookiesIn(headers: Headers): string[] {
  const cookies = (headers.get("cookie") ?? "").split(";").map((cookie) => cookie.trim());
  return cookies
    .filter((cookie) => cookie.startsWith("session="))
    .slice(0, mostCookies)
    .flatMap((cookie) => findDecoded(cookie.slice("session=".length)) ?? []);
}

function findDecoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

const attributes = { httpOnly: true, secure: true, sameSite: "lax", path: "/" } as const;

export type SessionCookie = typeof attributes & { value: string; maxAge: number };

export const sessionCookie = ({ cookieValue }: LiveSession): SessionCookie => ({
  ...attributes,
  value: cookieValue,
  maxAge: lifetimeSeconds,
});

export const clearedCookie: SessionCookie = { ...attributes, value: "", maxAge: 0 };
