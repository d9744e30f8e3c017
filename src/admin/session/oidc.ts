// Sign-in by OpenID Connect: openid-client does the code flow, jose the logout tokens, which that does not check.
//
//   begun: state, nonce and verifier in a sealed cookie -> the provider -> returned: code -> ID token -> user, role, team -> session
//
// It keeps true: without an issuer nothing of this runs, and neither package is loaded. Addresses are made of settings,
// never of `Host`. A user is `iss` and `sub`; names and e-mail addresses are labels. Role and team are those of the
// latest sign-in. A provider that does not answer changes nothing; only its `invalid_grant` for a refresh token says that
// somebody has left. Refresh tokens are sealed as the cookie is. Keys of the provider are fetched anew for each sign-in,
// so that it may exchange them at any time.

import { hkdfSync } from "node:crypto";
import { type Context, redirect } from "elysia";
import type { Configuration } from "openid-client";
import type { AdminDeps } from "../http/deps.ts";
import type { Role } from "../../domain/changes.ts";
import { subjectOf } from "../../domain/keys.ts";
import type { WallClock } from "../../time/clock.ts";
import { msPerDay, msPerMinute } from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { readAtMost } from "../http/body.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { sessionCookie } from "./cookie.ts";
import { createSessions } from "./session.ts";
import { StorageError } from "../../store/storage-error.ts";

export type SignInSettings = NonNullable<AdminDeps["signIn"]>;

const toleranceSeconds = 60;
const providerTimeoutSeconds = 10;
const metadataMs = 10 * 60_000;
const begunSeconds = 600;
/** Of those who wait for the provider, whom anyone can have wait. */
const waitLimits = { running: 32, waiting: 256, reserved: 0 };
const logoutLimits = { maxKib: 32, timeoutMs: 5000 };

export const signInPath = "/login/oidc";
const begunCookie = "sign_in";
const cookieAttributes = { httpOnly: true, secure: true, sameSite: "lax", path: signInPath } as const;

/** What the login page says in words. */
type SignInProblem = "expired" | "refused" | "no_role" | "inactive" | "unreachable" | "invalid";

class SignInError extends Error {
  constructor(
    readonly problem: SignInProblem,
    message: string,
    readonly fields: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

const loadClient = () => import("openid-client");

/** Asks the provider what it can do. @throws what openid-client throws */
export async function discover(
  { issuer, clientId, clientSecret }: Pick<SignInSettings, "issuer" | "clientId" | "clientSecret">,
  clock: WallClock,
): Promise<Configuration> {
  const client = await loadClient();
  const found = await client.discovery(new URL(issuer), clientId, undefined, undefined, {
    execute: issuer.startsWith("http:") ? [client.allowInsecureRequests] : [],
    timeout: providerTimeoutSeconds,
  });
  return configurationOf(client, found.serverMetadata(), { issuer, clientId, clientSecret }, clock);
}

/** A new one knows no keys yet. */
function configurationOf(
  client: Awaited<ReturnType<typeof loadClient>>,
  metadata: ReturnType<Configuration["serverMetadata"]>,
  { issuer, clientId, clientSecret }: Pick<SignInSettings, "issuer" | "clientId" | "clientSecret">,
  clock: WallClock,
): Configuration {
  const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const authentication = methods.includes("client_secret_basic") ? client.ClientSecretBasic : client.ClientSecretPost;
  const clocks = {
    [client.clockTolerance]: toleranceSeconds,
    [client.clockSkew]: Math.round((clock() - Date.now()) / 1000),
  };
  const configuration = new client.Configuration(metadata, clientId, clocks, authentication(clientSecret));
  configuration.timeout = providerTimeoutSeconds;
  if (issuer.startsWith("http:")) client.allowInsecureRequests(configuration);
  client.enableNonRepudiationChecks(configuration);
  return configuration;
}

type Provider = ReturnType<typeof createProvider>;

export function createProvider(signIn: SignInSettings, deps: AdminDeps) {
  const { store, clock, log, signingKey, clientAddress, endRunning, every } = deps;
  const { consoleUrl, scopes } = signIn;
  const redirectUri = consoleUrl + signInPath;
  const waits = createConcurrencyLimit(waitLimits);
  const sessions = createSessions(deps);
  const sealed = createSealed(signingKey, clock);
  let known: { metadata: ReturnType<Configuration["serverMetadata"]>; at: number } | undefined;

  async function provider(): Promise<{ client: Awaited<ReturnType<typeof loadClient>>; configuration: Configuration }> {
    const client = await loadClient();
    if (known === undefined || Math.abs(clock() - known.at) > metadataMs)
      known = { metadata: (await discover(signIn, clock)).serverMetadata(), at: clock() };
    return { client, configuration: configurationOf(client, known.metadata, signIn, clock) };
  }

  /** @returns where the browser goes, and what it keeps meanwhile */
  async function begin(next: string): Promise<{ to: string; keeps: string }> {
    const { client, configuration } = await provider();
    const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
    const keeps = await sealed.seal("sign-in", { state, nonce, verifier, next: next.slice(0, 1000) }, begunSeconds);
    const to = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: scopes,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    return { to: to.href, keeps };
  }

  /** Exchanges the code. @throws SignInError, and what openid-client throws */
  async function identify(query: URLSearchParams, begun: Begun) {
    const { client, configuration } = await provider();
    const checks = { pkceCodeVerifier: begun.verifier, expectedNonce: begun.nonce, expectedState: begun.state };
    const url = new URL(`${redirectUri}?${query}`);
    const tokens = await client.authorizationCodeGrant(configuration, url, { ...checks, idTokenExpected: true });
    const claims = tokens.claims();
    if (claims === undefined) throw new SignInError("invalid", "no ID token");
    const ahead = claims.iat - clock() / 1000;
    if (ahead > toleranceSeconds)
      throw new SignInError("invalid", "the provider's clock is ahead", { seconds: Math.round(ahead) });
    const isWhole = claimIn(claims, signIn.groupsClaim) !== undefined && nameIn(claims) !== undefined;
    const hasMore = !isWhole && configuration.serverMetadata().userinfo_endpoint !== undefined;
    const more = hasMore ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub) : {};
    return { claims: { ...more, ...claims }, refreshToken: tokens.refresh_token };
  }

  async function finish(request: Request, query: URLSearchParams, kept: unknown) {
    const begun = await sealed.open<Begun>("sign-in", kept);
    if (begun === undefined || begun.state !== query.get("state"))
      throw new SignInError("expired", "it was not begun here, or too long ago");
    const { claims, refreshToken } = await identify(query, begun);
    const groups = textsOf(claimIn(claims, signIn.groupsClaim));
    const { iss: source, sub: external } = claims;
    const sid = claimIn(claims, "sid");
    const role = roleOf(groups, signIn);
    if (role === undefined) throw new SignInError("no_role", "none of the groups has a role", { sub: external });
    const rights = new Set([...signIn.adminGroups, ...signIn.viewerGroups]);
    const user = await store.signIns.begin({
      source,
      external,
      name: (nameIn(claims) ?? external).slice(0, 120),
      groups,
      newTeam: (signIn.createsTeams && groups.find((group) => !rights.has(group) && group.length <= 120)) || null,
      refreshToken: refreshToken === undefined ? null : await sealed.seal("refresh", { refreshToken }),
    });
    if (user === undefined) throw new SignInError("inactive", "an administrator has switched the user off");
    const address = clientAddress(request);
    const person = { userId: user.id, username: user.name, role, providerSid: typeof sid === "string" ? sid : null };
    const session = await sessions.start({ address, client: request.headers.get("user-agent"), person });
    log.info("User signed in", { userId: user.id, name: user.name, role, address });
    return { session, next: begun.next };
  }

  /** Logs why nobody was let in. @returns what of it the login page may show @throws StorageError */
  async function tellProblem(request: Request, error: unknown): Promise<SignInProblem> {
    if (error instanceof StorageError) throw error;
    const problem = error instanceof SignInError ? error.problem : await problemOf(error);
    if (problem === "unreachable") known = undefined;
    const fields = error instanceof SignInError ? error.fields : {};
    log.warn("Sign-in refused", { problem, reason: reasonOf(error), ...fields, address: clientAddress(request) });
    return problem;
  }

  /** Ends the sessions that a logout token names. @throws ApiError 400 */
  async function logOut(request: Request): Promise<true> {
    const body = await readAtMost(request, logoutLimits);
    if (body instanceof ApiError) throw body;
    const token = new URLSearchParams(Buffer.from(body).toString()).get("logout_token") ?? "";
    const { jwtVerify, createRemoteJWKSet } = await import("jose");
    try {
      const { configuration } = await provider();
      const { issuer: from, jwks_uri: keys = "" } = configuration.serverMetadata();
      const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(keys)), {
        issuer: from,
        audience: signIn.clientId,
        clockTolerance: toleranceSeconds,
        currentDate: new Date(clock()),
        maxTokenAge: begunSeconds,
        requiredClaims: ["iat", "jti", "events"],
      });
      const { sub, sid, events } = payload;
      const isLogout = Object.hasOwn(Object(events), "http://schemas.openid.net/event/backchannel-logout");
      if (!isLogout || "nonce" in payload) throw new Error("it is no logout token");
      const named = { external: sub, sid: typeof sid === "string" ? sid : undefined };
      if (named.external === undefined && named.sid === undefined) throw new Error("it names nobody");
      const ended = await store.sessions.deleteOfProvider(from, named);
      log.info("Sessions ended by the provider", { ended });
      return true;
    } catch (error) {
      if (error instanceof StorageError) throw error;
      log.warn("Logout by the provider refused", { reason: reasonOf(error), address: clientAddress(request) });
      throw new ApiError(400, "logout_token is not valid");
    }
  }

  /** Asks the provider whether one user is still there. @returns whether it answered */
  async function check({ id, refreshToken }: { id: number; refreshToken: string }): Promise<boolean> {
    const opened = await sealed.open<{ refreshToken: string }>("refresh", refreshToken);
    if (opened === undefined) {
      log.warn("Refresh token of a user cannot be read: SECRET_KEY is another one", { userId: id });
      await store.signIns.keep(id, refreshToken, { refreshToken: null });
      return true;
    }
    try {
      const { client, configuration } = await provider();
      const { refresh_token: next } = await client.refreshTokenGrant(configuration, opened.refreshToken);
      if (next !== undefined && next !== opened.refreshToken)
        await store.signIns.keep(id, refreshToken, {
          refreshToken: await sealed.seal("refresh", { refreshToken: next }),
        });
      return true;
    } catch (error) {
      if (!(await isInvalidGrant(error))) {
        known = undefined;
        log.warn("Provider not asked whether a user is still there", { userId: id, reason: reasonOf(error) });
        return false;
      }
      if (await store.signIns.leave(id, refreshToken)) await tellLeft(id, "the provider refuses the refresh token");
      return true;
    }
  }

  async function tellLeft(id: number, reason: string): Promise<void> {
    log.info("User switched off", { userId: id, reason });
    await endRunning(subjectOf(id), clock());
  }

  let isChecking = false;

  /** Asks about all whose turn it is, unless the provider does not answer. */
  async function checkUsers(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    try {
      for (;;) {
        const now = clock();
        const user = await store.signIns.claim(now - signIn.checkMs, now);
        if (user === undefined) break;
        if (await check(user)) continue;
        await store.signIns.keep(user.id, user.refreshToken, { checkedAt: user.checkedAt });
        break;
      }
      const left = await store.signIns.endUnseen(clock() - signIn.memberKeysDays * msPerDay);
      for (const id of left) await tellLeft(id, "no sign-in for MEMBER_KEYS_DAYS");
    } catch (error) {
      log.warn("Users of the provider not checked", { error: String(error) });
    } finally {
      isChecking = false;
    }
  }

  every(Math.min(signIn.checkMs, msPerMinute), checkUsers);
  return {
    begin,
    /** @throws what `tellProblem` takes */
    async finish(request: Request, query: URLSearchParams, kept: unknown) {
      const finished = await waits.run(true, () => finish(request, query, kept));
      if (finished === undefined) throw new SignInError("unreachable", "too many wait for the provider");
      return finished;
    },
    tellProblem,
    async logOut(request: Request): Promise<true> {
      const ended = await waits.run(true, () => logOut(request));
      if (ended === undefined) throw new ApiError(503, "Too many wait for the provider", { "retry-after": "1" });
      return ended;
    },
  };
}

/** Begins a sign-in, or ends the one from which the provider sends the browser back. */
export const goThroughProvider =
  (provider: Provider) =>
  async ({ request, cookie: { session: cookie, [begunCookie]: kept } }: Pick<Context, "request" | "cookie">) => {
    const query = new URL(request.url).searchParams;
    try {
      if (!query.has("code") && !query.has("error")) {
        const { to, keeps } = await provider.begin(query.get("next") ?? "/");
        kept?.set({ ...cookieAttributes, value: keeps, maxAge: begunSeconds });
        return redirect(to);
      }
      const begun: unknown = kept?.value;
      kept?.set({ ...cookieAttributes, value: "", maxAge: 0 });
      const { session, next } = await provider.finish(request, query, begun);
      cookie?.set(sessionCookie(session));
      return redirect(`/login?${new URLSearchParams({ signed_in: "1", next })}`);
    } catch (error) {
      return redirect(`/login?problem=${await provider.tellProblem(request, error)}`);
    }
  };

/** Back-channel logout. */
export const logOutByProvider =
  (provider: Provider) =>
  async ({ request }: Pick<Context, "request">) => {
    await provider.logOut(request);
    return new Response(null);
  };

interface Begun {
  state: string;
  nonce: string;
  verifier: string;
  next: string;
}

/** Encrypts and signs by a key that SECRET_KEY gives, each text for one use. */
function createSealed(signingKey: string, clock: WallClock) {
  const key = new Uint8Array(hkdfSync("sha256", signingKey, "", "tollgate sign-in", 32));
  return {
    async seal(use: string, value: Record<string, string>, seconds?: number): Promise<string> {
      const { EncryptJWT } = await import("jose");
      const token = new EncryptJWT(value).setProtectedHeader({ alg: "dir", enc: "A256GCM" }).setAudience(use);
      if (seconds !== undefined) token.setExpirationTime(Math.floor(clock() / 1000) + seconds);
      return await token.encrypt(key);
    },
    /** Undefined: it was not sealed here, for this use, or its time is over. */
    async open<T>(use: string, text: unknown): Promise<T | undefined> {
      if (typeof text !== "string") return undefined;
      const { jwtDecrypt } = await import("jose");
      const options = { audience: use, currentDate: new Date(clock()) };
      return await jwtDecrypt<T>(text, key, options).then(
        ({ payload }) => payload,
        () => undefined,
      );
    },
  };
}

/** @param path as it is, or the names of members with dots in between */
function claimIn(claims: object, path: string): unknown {
  const members = claims as Record<string, unknown>;
  if (Object.hasOwn(members, path)) return members[path];
  return path
    .split(".")
    .reduce<unknown>((value, name) => (Object.hasOwn(Object(value), name) ? Object(value)[name] : undefined), claims);
}

/** A text is one value. */
const textsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((one): one is string => typeof one === "string" && one !== "");

const nameIn = (claims: object): string | undefined =>
  ["name", "preferred_username", "email"].flatMap((name) => textsOf(claimIn(claims, name)))[0];

function roleOf(
  groups: readonly string[],
  { adminGroups, viewerGroups, defaultRole }: SignInSettings,
): Role | undefined {
  const isIn = (others: readonly string[]): boolean => groups.some((group) => others.includes(group));
  if (isIn(adminGroups)) return "admin";
  if (isIn(viewerGroups)) return "viewer";
  return defaultRole === "none" ? undefined : defaultRole;
}

const isInvalidGrant = async (error: unknown): Promise<boolean> => {
  const { ResponseBodyError } = await loadClient();
  return error instanceof ResponseBodyError && error.error === "invalid_grant";
};

/** What the provider did not answer, or answered in a way that no client can use. */
const unanswered = /^OAUTH_(TIMEOUT|ABORT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON|PARSE_ERROR)$/;

async function problemOf(error: unknown): Promise<SignInProblem> {
  const { AuthorizationResponseError, ResponseBodyError, ClientError } = await loadClient();
  if (error instanceof AuthorizationResponseError) return "refused";
  if (error instanceof ResponseBodyError) return (await isInvalidGrant(error)) ? "expired" : "invalid";
  return error instanceof ClientError && error.code !== undefined && !unanswered.test(error.code)
    ? "invalid"
    : "unreachable";
}

/** For the log: what the packages say, and not what they were given. */
export function reasonOf(error: unknown): string {
  const { message, error: code, cause } = Object(error) as { message?: unknown; error?: unknown; cause?: unknown };
  const inner = cause instanceof Error ? `: ${cause.message}` : "";
  return `${String(message)}${typeof code === "string" ? ` (${code})` : inner}`;
}
