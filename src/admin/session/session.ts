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
import type { Role } from "../../domain/changes.ts";
import type { UserId } from "../../domain/keys.ts";
import type { Person, Session, SessionStore } from "../../store/accounts/contract.ts";
import { StorageError } from "../../store/storage-error.ts";
import { randomHex, sha256Hex } from "./secrets.ts";
import { personLifetimeSeconds, sessionCookiesIn, sessionLifetimeSeconds } from "./cookie.ts";

/** The expiry is written in steps, so that a console that polls does not write on every request. */
const expiryStepMs = 60_000;

const maxClientLength = 200;

export interface LiveSession {
  idHash: string;
  csrfToken: string;
  username: string;
  /** The cookie's value as received, to send again. */
  cookieValue: string;
  /** For how many seconds the browser keeps it. */
  maxAge: number;
  /** Who signed in at a provider; null: the administrator, by the password. */
  userId: UserId | null;
  role: Role;
  isRemembered?: boolean | undefined;
}

interface NewSession {
  address: string;
  client: string | null;
  person?: Person & { username: string };
}

const personOf = ({ userId = null, role = null }: Partial<Person>) => ({ userId, role: role ?? "admin" });

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({
  store,
  config,
  signingKey,
  clock,
  log,
}: Pick<AdminDeps, "store" | "config" | "signingKey" | "clock" | "log">) {
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
    if (row === undefined) return undefined;
    const { csrfToken, username, expiresAt, isRemembered } = row;
    const live = { idHash, csrfToken, username, cookieValue, isRemembered, ...personOf(row) };
    if (live.userId !== null) return { ...live, maxAge: Math.ceil((expiresAt - clock()) / 1000) };
    // Changing ADMIN_USERNAME ends the sessions of the old name.
    if (username !== config.username) return undefined;
    extend(idHash, expiresAt);
    return { ...live, maxAge: sessionLifetimeSeconds };
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

    /**
     * Always under a new id, whatever cookie the browser sent.
     * @param person who signed in at a provider; absent: the administrator did, by the password
     */
    async start({ address, client, person }: NewSession): Promise<LiveSession> {
      const id = randomHex(32);
      const session = { csrfToken: randomHex(32), username: config.username, ...person };
      const maxAge = person === undefined ? sessionLifetimeSeconds : personLifetimeSeconds;
      const [idHash, createdAt] = [sha256Hex(id), clock()];
      const origin = { createdAt, address, client: client?.slice(0, maxClientLength) ?? null };
      await store.sessions.create(idHash, { ...session, expiresAt: createdAt + maxAge * 1000 }, origin);
      const { csrfToken, username } = session;
      const cookieValue = await signCookie(id, signingKey);
      return { csrfToken, username, ...personOf(session), maxAge, idHash, cookieValue };
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
        const isOver = last === undefined || clock() - last.at > rememberedMs || last.session.expiresAt <= now;
        if (!(error instanceof StorageError) || isOver) throw error;
        return { ...last.session, isRemembered: true };
      }
    },
    async delete(idHash, by) {
      seen.delete(idHash);
      await sessions.delete(idHash, by);
    },
    async deleteOthers(idHash, by, of) {
      for (const other of seen.keys()) if (other !== idHash) seen.delete(other);
      return await sessions.deleteOthers(idHash, by, of);
    },
    async deleteOfProvider(source, named) {
      seen.clear();
      return await sessions.deleteOfProvider(source, named);
    },
  };
}
