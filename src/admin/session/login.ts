import type { AdminDeps } from "../http/deps.ts";
import { findHeadProblem, type JsonObject, loginBodyLimits, readJsonObject } from "../http/body.ts";
import { bodyParser } from "../http/body-schema.ts";
import { addressScope } from "../../domain/client-address.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { loginRequest } from "./contract.ts";
import { ApiError } from "../http/errors.ts";
import { createKnownAddresses } from "./known-addresses.ts";
import { createLoginAttempts, type LoginClient, tooManyAttempts } from "./login-attempts.ts";
import { passwordHashSetting, verifyPassword } from "./password.ts";
import { equalSecrets } from "./secrets.ts";
import type { LiveSession, Sessions } from "./session.ts";

const parseCredentials = bodyParser(loginRequest);

/** Bodies that are being read, of up to 8 KiB each. A flood leaves the reserved ones to known clients. */
const readLimits = { running: 128, waiting: 0, reserved: 32 };

/** A verification takes 19 MiB and about 20 ms of a core: a flood of logins must not exhaust either. */
const verificationLimits = { running: 2, waiting: 32, reserved: 8 };

const retryWhenFullMs = 1000;

/**
 * Starts a session for the right username and password. `address` is the client's, for the limit on attempts.
 * @throws ApiError 400, 401, 408, 413, 415, 429
 */
export type Login = (request: Request, address: string) => Promise<LiveSession>;

export function createLogin({ store, config, sessions, clock, log }: AdminDeps & { sessions: Sessions }): Login {
  const reads = createConcurrencyLimit(readLimits);
  const verifications = createConcurrencyLimit(verificationLimits);
  const recordRefused = (scope: string, times: number) =>
    store.audit
      .addRefusedLogins(scope, times)
      .catch((error: unknown) => log.warn("Refused login not recorded", { error: String(error) }));
  const attempts = createLoginAttempts({ store, clock, log, recordRefused });
  const knownAddresses = createKnownAddresses({ store, clock, log });

  const isKnown = async (headers: Headers, address: string): Promise<boolean> =>
    (await knownAddresses.has(addressScope(address))) || (await sessions.find(headers)) !== undefined;

  async function readCounted(request: Request, client: LoginClient): Promise<JsonObject | ApiError> {
    // Begun before the wait for the database: Bun (1.4.5) buffers a body of unknown length that nothing reads without
    // limit. Remove when it does not.
    const reading = readJsonObject(request, loginBodyLimits);
    await attempts.count(client);
    return reading;
  }

  /** @returns the stored hash if the password fits it */
  async function findVerifiedHash(password: string): Promise<{ hash: string | undefined }> {
    const hash = (await store.settings.find(passwordHashSetting)) ?? "";
    return { hash: (await verifyPassword(password, hash)) ? hash : undefined };
  }

  return async (request, address) => {
    const problem = findHeadProblem(request, loginBodyLimits);
    if (problem !== undefined) throw problem;
    const client = { address, isKnown: await isKnown(request.headers, address) };
    attempts.throwIfRefused(client);
    // Before any query: refusing a flood must cost the database nothing.
    if (!verifications.hasRoom(client.isKnown)) throw tooManyAttempts(retryWhenFullMs);
    const body = await reads.run(client.isKnown, () => readCounted(request, client));
    if (body === undefined) throw tooManyAttempts(retryWhenFullMs);
    const { username, password } = parseCredentials(body);

    const verified = await verifications.run(client.isKnown, () => findVerifiedHash(password));
    if (verified === undefined) throw tooManyAttempts(retryWhenFullMs);
    const { hash } = verified;
    // The password is verified for every username, so that an unknown one takes the same time.
    if (hash === undefined || !equalSecrets(username, config.username)) return refuse(address);

    const session = await sessions.start({ address, client: request.headers.get("user-agent") });
    // A password set during the verification has ended every session but this new one.
    if ((await store.settings.find(passwordHashSetting)) !== hash) {
      await store.sessions.delete(session.idHash);
      return refuse(address);
    }
    await knownAddresses.add(addressScope(address));
    log.info("Admin logged in", { username: session.username, address });
    return session;
  };

  async function refuse(address: string): Promise<never> {
    await recordRefused(addressScope(address), 1);
    log.warn("Login refused: invalid credentials", { address });
    throw new ApiError(401, "Invalid credentials");
  }
}
