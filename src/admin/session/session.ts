// Who is logged in: the one operator, by a password and sessions. Other rooms get the actor from here, and see neither
// cookie nor password.
//
// It keeps true: the cookie has a signed id, and the database its hash; a login always makes a new id. Attempts are
// limited by address, over all processes on the database; a flood of them takes neither memory nor cores without a
// limit, and leaves some room to known clients (`login.ts`). The password is verified for every username, so that an
// unknown one takes the same time; a change of it ends all other sessions.

import type { AdminDeps } from "../http/deps.ts";
import { signCookie, unsignCookie } from "elysia/utils";
import type { WallClock } from "../../time/clock.ts";
import type { Session, SessionStore } from "../../store/accounts/contract.ts";
import { StorageError } from "../../store/storage-error.ts";
import { randomHex, sha256Hex } from "./secrets.ts";
import { sessionCookiesIn, sessionLifetimeSeconds } from "./cookie.ts";

/** The expiry is written in steps, so that a console that polls does not write on every request. */
const expiryStepMs = 60_000;

const maxClientLength = 200;

export interface LiveSession {
  idHash: string;
  csrfToken: string;
  username: string;
  /** The cookie's value as received, to send again. */
  cookieValue: string;
  isRemembered?: boolean | undefined;
}

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({ store, config, signingKey, clock, log }: AdminDeps) {
  const expiry = () => clock() + sessionLifetimeSeconds * 1000;

  function extend(idHash: string, expiresAt: number): void {
    if (expiry() - expiresAt < expiryStepMs) return;
    // Not awaited: the console stays usable on a full disk.
    store.sessions
      .extend(idHash, expiry())
      .catch((error: unknown) =>
        log.warn("Session expiry not saved; retrying on the next request", { error: String(error) }),
      );
  }

  async function findByCookie(cookieValue: string): Promise<LiveSession | undefined> {
    const id = await unsignCookie(cookieValue, signingKey);
    if (typeof id !== "string") return undefined;
    const idHash = sha256Hex(id);
    const row = await store.sessions.find(idHash, clock());
    // Changing ADMIN_USERNAME ends the sessions of the old name.
    if (row === undefined || row.username !== config.username) return undefined;
    extend(idHash, row.expiresAt);
    const { csrfToken, username, isRemembered } = row;
    return { idHash, csrfToken, username, cookieValue, isRemembered };
  }

  return {
    /** Undefined if the cookie is missing, forged, truncated, foreign, expired or logged out; none of these is an error. */
    async find(headers: Headers): Promise<LiveSession | undefined> {
      for (const cookieValue of sessionCookiesIn(headers)) {
        const session = await findByCookie(cookieValue);
        if (session !== undefined) return session;
      }
      return undefined;
    },

    /** Always under a new id, whatever cookie the browser sent. */
    async start({ address, client }: { address: string; client: string | null }): Promise<LiveSession> {
      const id = randomHex(32);
      const session = { csrfToken: randomHex(32), username: config.username };
      await store.sessions.create(
        sha256Hex(id),
        { ...session, expiresAt: expiry() },
        {
          createdAt: clock(),
          address,
          client: client === null ? null : client.slice(0, maxClientLength),
        },
      );
      return { ...session, idHash: sha256Hex(id), cookieValue: await signCookie(id, signingKey) };
    },
  };
}

const rememberedMs = 12 * 60 * 60_000;
const maxRemembered = 1000;

/** While the database is away, a session reads that this process has found within the last 12 hours, and not seen end. */
export function rememberSessions(sessions: SessionStore, clock: WallClock): SessionStore {
  const seen = new Map<string, { session: Session; at: number }>();
  return {
    ...sessions,
    async find(idHash, now) {
      try {
        const session = await sessions.find(idHash, now);
        seen.delete(idHash);
        if (session !== undefined) seen.set(idHash, { session, at: clock() });
        for (const [oldest] of seen) if (seen.size > maxRemembered) seen.delete(oldest);
        return session;
      } catch (error) {
        const last = seen.get(idHash);
        if (!(error instanceof StorageError) || last === undefined || clock() - last.at > rememberedMs) throw error;
        return { ...last.session, isRemembered: true };
      }
    },
    async delete(idHash, by) {
      seen.delete(idHash);
      await sessions.delete(idHash, by);
    },
    async deleteOthers(idHash, by) {
      for (const other of seen.keys()) if (other !== idHash) seen.delete(other);
      return await sessions.deleteOthers(idHash, by);
    },
    async deleteAll() {
      seen.clear();
      await sessions.deleteAll();
    },
  };
}
