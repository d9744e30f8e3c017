import type { AdminDeps } from "../http/deps.ts";
import type { ChangeContext, JsonContext } from "./auth.ts";
import { bodyParser } from "../http/body-schema.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { ApiError } from "../http/errors.ts";
import { createLoginAttempts } from "./login-attempts.ts";
import { hashPassword, passwordHashSetting, verifyPassword } from "./password.ts";
import * as schema from "../http/schemas.ts";
import { sessionLifetimeSeconds } from "./cookie.ts";
import type { LiveSession } from "./session.ts";
import { type EndedBody, passwordRequest, type SessionsBody } from "./contract.ts";

interface SessionContext extends ChangeContext {
  session: LiveSession;
}

const parsePasswords = bodyParser(passwordRequest);

export const changePassword = (deps: AdminDeps) => {
  const { store, log, passwordFromEnvironment } = deps;
  const attempts = createLoginAttempts(deps);
  // A verification takes 19 MiB and about 20 ms of a core.
  const verifications = createConcurrencyLimit({ running: 1, waiting: 4, reserved: 0 });

  return async ({ json, session, actor, by }: SessionContext & JsonContext): Promise<schema.OkBody> => {
    const { current_password: current, new_password: next } = parsePasswords(json);
    if (passwordFromEnvironment) throw new ApiError(409, "The password is set by ADMIN_PASSWORD; change it there");
    // Whoever has taken over a session must not find out the password with it.
    await attempts.count({ address: actor.address, isKnown: true });
    const isRight = await verifications.run(true, async () =>
      verifyPassword(current, (await store.settings.find(passwordHashSetting)) ?? ""),
    );
    if (isRight === undefined) throw new ApiError(429, "Too many attempts, try again later", { "retry-after": "1" });
    if (!isRight) {
      log.warn("Password change refused: wrong current password", { ...actor });
      throw new ApiError(403, "The current password is wrong");
    }
    await store.settings.set(passwordHashSetting, await hashPassword(next), by);
    await store.sessions.deleteOthers(session.idHash);
    log.info("Admin password changed; all other sessions ended", { ...actor });
    return { ok: true };
  };
};

/** Enough of a hash to tell sessions apart. */
const publicId = (idHash: string): string => idHash.slice(0, 16);

/** Whose sessions a session may see and end; undefined: all. */
const ofWhom = ({ role, userId }: LiveSession) => (role === "admin" || userId === null ? undefined : userId);

export const listSessions =
  ({ store, clock }: AdminDeps) =>
  async ({ session: own }: Pick<SessionContext, "session">): Promise<SessionsBody> =>
    (await store.sessions.list(clock(), ofWhom(own))).map(({ idHash, role, ...session }) =>
      schema.apiBody({
        id: publicId(idHash),
        isCurrent: idHash === own.idHash,
        // One that is not extended does not tell.
        lastSeenAt: session.userId === null ? session.expiresAt - sessionLifetimeSeconds * 1000 : null,
        role: role ?? "admin",
        ...session,
      }),
    );

export const endSession =
  ({ store, clock, log }: AdminDeps) =>
  async ({ params, session, actor, by }: SessionContext & { params: { id: string } }): Promise<schema.OkBody> => {
    const found = (await store.sessions.list(clock(), ofWhom(session))).find(
      ({ idHash }) => publicId(idHash) === params.id,
    );
    if (found === undefined) throw new ApiError(404, "Session not found");
    await store.sessions.delete(found.idHash, by);
    log.info("Session ended", { ...actor, session: params.id });
    return { ok: true };
  };

export const endOtherSessions =
  ({ store, log }: AdminDeps) =>
  async ({ session, actor, by }: SessionContext): Promise<EndedBody> => {
    const ended = await store.sessions.deleteOthers(session.idHash, by, ofWhom(session));
    log.info("All other sessions ended", { ...actor, ended });
    return { ok: true, ended };
  };
