import type { WallClock } from "../time/clock.ts";
import type { Log } from "../log/log.ts";
import type { Store } from "../store/store.ts";
import type { JsonObject } from "./body.ts";
import { attemptScope } from "./client-address.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { ApiError } from "./errors.ts";
import { passwordHashSetting, verifyPassword } from "./password.ts";
import { equalSecrets } from "./secrets.ts";
import type { LiveSession, Sessions } from "./session.ts";

export interface LoginDeps {
  store: Pick<Store, "sessions" | "settings">;
  config: { username: string };
  sessions: Sessions;
  clock: WallClock;
  log: Log;
}

interface Credentials {
  username: string;
  password: string;
}

/** A verification takes 19 MiB and about 20 ms of a core: a flood of logins must not exhaust either. */
const verificationLimits = { running: 2, waiting: 32 };

const tooManyAttempts = (waitMs: number) =>
  new ApiError(429, "Too many login attempts, try again later", {
    "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
  });

/**
 * Starts a session for the right username and password. `address` is the client's, for the limit on attempts.
 * @throws ApiError 400, 401, 429
 */
export type Login = (body: JsonObject, address: string) => Promise<LiveSession>;

export function createLogin({ store, config, sessions, clock, log }: LoginDeps): Login {
  const limitVerifications = createConcurrencyLimit(verificationLimits);

  return async (body, address) => {
    const { username, password } = parseCredentials(body);
    const waitMs = await store.sessions.countLoginAttempt(attemptScope(address), clock());
    if (waitMs > 0) {
      log.warn("Login refused: too many attempts", { address });
      throw tooManyAttempts(waitMs);
    }
    const hash = (await store.settings.find(passwordHashSetting)) ?? "";
    const verified = await limitVerifications(() => verifyPassword(password, hash));
    if (verified === undefined) throw tooManyAttempts(1000);
    // The password is verified for every username, so that an unknown one takes the same time.
    if (!verified || !equalSecrets(username, config.username)) return refuse(address);

    const session = await sessions.start();
    // A password set during the verification has ended every session but this new one.
    if ((await store.settings.find(passwordHashSetting)) !== hash) {
      await sessions.end(session);
      return refuse(address);
    }
    log.info("Admin logged in", { address });
    return session;
  };

  function refuse(address: string): never {
    log.warn("Login refused: invalid credentials", { address });
    throw new ApiError(401, "Invalid credentials");
  }
}

function parseCredentials({ username, password }: JsonObject): Credentials {
  if (typeof username !== "string") throw new ApiError(400, "username must be a string");
  if (typeof password !== "string") throw new ApiError(400, "password must be a string");
  return { username, password };
}
