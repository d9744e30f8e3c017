import type { WallClock } from "../time/clock.ts";
import type { Log } from "../log/log.ts";
import type { Store } from "../store/store.ts";
import type { JsonObject } from "./body.ts";
import { attemptScope } from "./client-address.ts";
import { ApiError } from "./errors.ts";
import { passwordHashSetting, verifyPassword } from "./password.ts";
import { equalSecrets } from "./secrets.ts";
import type { LiveSession, Sessions } from "./session.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";

export interface LoginDeps {
  store: Pick<Store, "sessions" | "settings">;
  config: { username: string };
  sessions: Sessions;
  clock: WallClock;
  log: Log;
}

interface LoginAttempt {
  username: string;
  password: string;
}

/** Each verification takes 19 MiB and a core for some 20 ms: a flood from many addresses may take neither all of. */
const verifications = { running: 2, waiting: 32 };

const tooManyAttempts = (waitMs: number) =>
  new ApiError(429, "Too many login attempts, try again later", {
    "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
  });

/** @throws ApiError 400, 401, 429 */
export type Login = (body: JsonObject, address: string) => Promise<LiveSession>;

export function createLogin({ store, config, sessions, clock, log }: LoginDeps): Login {
  const turnstile = createConcurrencyLimit(verifications);

  return async (body, address) => {
    const attempt = parseAttempt(body);
    const waitMs = await store.sessions.countLoginAttempt(attemptScope(address), clock());
    if (waitMs > 0) {
      log.warn("login refused, too many attempts", { address });
      throw tooManyAttempts(waitMs);
    }
    const hash = (await store.settings.find(passwordHashSetting)) ?? "";
    const verified = await turnstile(() => verifyPassword(attempt.password, hash));
    if (verified === undefined) throw tooManyAttempts(1000);
    // The password is verified for every user name, so that an unknown one takes the same time.
    if (!verified || !equalSecrets(attempt.username, config.username)) return refuse(address);

    const session = await sessions.start();
    // A password set while the old one was being verified has ended all sessions but this one.
    if ((await store.settings.find(passwordHashSetting)) !== hash) {
      await sessions.end(session);
      return refuse(address);
    }
    log.info("login", { address });
    return session;
  };

  function refuse(address: string): never {
    log.warn("login refused, invalid credentials", { address });
    throw new ApiError(401, "Invalid credentials");
  }
}

function parseAttempt({ username, password }: JsonObject): LoginAttempt {
  if (typeof username !== "string") throw new ApiError(400, "username must be a string");
  if (typeof password !== "string") throw new ApiError(400, "password must be a string");
  return { username, password };
}
