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
import { subjectOf, type UserId } from "../../domain/keys.ts";
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
const maxNameLength = 120;
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
  ) {
    super(message);
  }
}

const loadClient = () => import("openid-client");
type Client = Awaited<ReturnType<typeof loadClient>>;
type Metadata = ReturnType<Configuration["serverMetadata"]>;

/** What the provider says that it can do. @throws what openid-client throws */
export async function discover({ issuer, clientId }: Pick<SignInSettings, "issuer" | "clientId">): Promise<Metadata> {
  const client = await loadClient();
  const execute = issuer.startsWith("http:") ? [client.allowInsecureRequests] : [];
  const options = { execute, timeout: providerTimeoutSeconds };
  return (await client.discovery(new URL(issuer), clientId, undefined, undefined, options)).serverMetadata();
}

/** A new one knows no keys yet. */
function configurationOf(client: Client, metadata: Metadata, settings: SignInSettings, clock: WallClock) {
  const { issuer, clientId, clientSecret } = settings;
  const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  const authentication = methods.includes("client_secret_basic") ? client.ClientSecretBasic : client.ClientSecretPost;
  const skew = Math.round((clock() - Date.now()) / 1000);
  const clocks = { [client.clockTolerance]: toleranceSeconds, [client.clockSkew]: skew };
  const configuration = new client.Configuration(metadata, clientId, clocks, authentication(clientSecret));
  configuration.timeout = providerTimeoutSeconds;
  if (issuer.startsWith("http:")) client.allowInsecureRequests(configuration);
  client.enableNonRepudiationChecks(configuration);
  return configuration;
}

export class Provider {
  readonly #settings: SignInSettings;
  readonly #deps: AdminDeps;
  readonly #sessions: Pick<ReturnType<typeof createSessions>, "start">;
  readonly #sealed: ReturnType<typeof createSealed>;
  readonly #waits = createConcurrencyLimit(waitLimits);
  #known: { metadata: Metadata; at: number } | undefined;
  #isChecking = false;

  constructor(settings: SignInSettings, deps: AdminDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.#sessions = createSessions(deps);
    this.#sealed = createSealed(deps.signingKey, deps.clock);
    deps.every(Math.min(settings.checkMs, msPerMinute), () => this.#checkUsers());
  }

  async #ask(): Promise<{ client: Client; metadata: Metadata; configuration: Configuration }> {
    const { clock } = this.#deps;
    const client = await loadClient();
    if (this.#known === undefined || Math.abs(clock() - this.#known.at) > metadataMs)
      this.#known = { metadata: await discover(this.#settings), at: clock() };
    const { metadata } = this.#known;
    return { client, metadata, configuration: configurationOf(client, metadata, this.#settings, clock) };
  }

  /** @throws ApiError 503 */
  async #waiting<T extends object>(work: () => Promise<T>): Promise<T> {
    const done = await this.#waits.run(true, work);
    if (done === undefined) throw new ApiError(503, "Too many wait for the provider", { "retry-after": "1" });
    return done;
  }

  get #redirectUri(): string {
    return this.#settings.consoleUrl + signInPath;
  }

  /** @returns where the browser goes, and what it keeps meanwhile */
  begin = (next: string): Promise<{ to: string; keeps: string }> =>
    this.#waiting(async () => {
      const { client, configuration } = await this.#ask();
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
      const begun = { state, nonce, verifier, next: next.slice(0, 1000) };
      const to = client.buildAuthorizationUrl(configuration, {
        redirect_uri: this.#redirectUri,
        scope: this.#settings.scopes,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      return { to: to.href, keeps: await this.#sealed.seal("sign-in", begun, begunSeconds) };
    });

  /** Exchanges the code. @throws SignInError, and what openid-client throws */
  async #identify(query: URLSearchParams, begun: Begun) {
    const { client, metadata, configuration } = await this.#ask();
    const checks = { pkceCodeVerifier: begun.verifier, expectedNonce: begun.nonce, expectedState: begun.state };
    const url = new URL(`${this.#redirectUri}?${query}`);
    const tokens = await client.authorizationCodeGrant(configuration, url, { ...checks, idTokenExpected: true });
    const claims = tokens.claims();
    if (claims === undefined) throw new SignInError("invalid", "no ID token");
    // Nobody checks that it was not issued later than now; some are issued minutes earlier on purpose.
    const ahead = claims.iat - this.#deps.clock() / 1000;
    if (ahead > toleranceSeconds) throw new SignInError("invalid", `the provider's clock is ahead by ${ahead} s`);
    const isWhole = claimIn(claims, this.#settings.groupsClaim) !== undefined && nameIn(claims) !== undefined;
    const hasMore = !isWhole && metadata.userinfo_endpoint !== undefined;
    const more = hasMore ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub) : {};
    return { claims: { ...more, ...claims }, refreshToken: tokens.refresh_token };
  }

  /** @throws what `tellProblem` takes */
  finish = (request: Request, query: URLSearchParams, kept: unknown) =>
    this.#waiting(async () => {
      const { store, log, clientAddress } = this.#deps;
      const { groupsClaim, adminGroups, viewerGroups, createsTeams } = this.#settings;
      const begun = await this.#sealed.open<Begun>("sign-in", kept);
      if (begun === undefined || begun.state !== query.get("state"))
        throw new SignInError("expired", "it was not begun here, or too long ago");
      const { claims, refreshToken } = await this.#identify(query, begun);
      const groups = textsOf(claimIn(claims, groupsClaim));
      const { iss: source, sub: external } = claims;
      const role = roleOf(groups, this.#settings);
      if (role === undefined) throw new SignInError("no_role", `none of the groups of ${external} has a role`);
      const isTeam = (group: string): boolean => !adminGroups.includes(group) && !viewerGroups.includes(group);
      const user = await store.signIns.begin({
        source,
        external,
        name: (nameIn(claims) ?? external).slice(0, maxNameLength),
        groups,
        newTeam: (createsTeams && groups.find((one) => isTeam(one) && one.length <= maxNameLength)) || null,
        refreshToken: refreshToken === undefined ? null : await this.#sealed.seal("refresh", { refreshToken }),
      });
      if (user === undefined) throw new SignInError("inactive", "an administrator has switched the user off");
      const address = clientAddress(request);
      const providerSid = textsOf(claimIn(claims, "sid"))[0] ?? null;
      const person = { userId: user.id, username: user.name, role, providerSid };
      const session = await this.#sessions.start({ address, client: request.headers.get("user-agent"), person });
      log.info("User signed in", { userId: user.id, name: user.name, role, address });
      return { session, next: begun.next };
    });

  /** Logs why nobody was let in. @returns what of it the login page may show @throws StorageError */
  async tellProblem(request: Request, error: unknown): Promise<SignInProblem> {
    if (error instanceof StorageError) throw error;
    const problem = error instanceof SignInError ? error.problem : await problemOf(error);
    if (problem === "unreachable") this.#known = undefined;
    const address = this.#deps.clientAddress(request);
    this.#deps.log.warn("Sign-in refused", { problem, reason: reasonOf(error), address });
    return problem;
  }

  /** Ends the sessions that a logout token names. @throws ApiError 400, 413, 503 */
  logOut = (request: Request): Promise<Response> =>
    this.#waiting(async () => {
      const { store, clock, log, clientAddress } = this.#deps;
      const body = await readAtMost(request, logoutLimits);
      if (body instanceof ApiError) throw body;
      const token = new URLSearchParams(Buffer.from(body).toString()).get("logout_token") ?? "";
      try {
        const { jwtVerify, createRemoteJWKSet } = await import("jose");
        const { issuer, jwks_uri: keys = "" } = (await this.#ask()).metadata;
        const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(keys)), {
          issuer,
          audience: this.#settings.clientId,
          clockTolerance: toleranceSeconds,
          currentDate: new Date(clock()),
          maxTokenAge: begunSeconds,
          requiredClaims: ["iat", "jti", "events"],
        });
        const { sub: external, events } = payload;
        const isLogout = Object.hasOwn(Object(events), "http://schemas.openid.net/event/backchannel-logout");
        if (!isLogout || "nonce" in payload) throw new Error("it is no logout token");
        const [sid] = textsOf(payload["sid"]);
        if (external === undefined && sid === undefined) throw new Error("it names nobody");
        const ended = await store.sessions.deleteOfProvider(issuer, { external, sid });
        log.info("Sessions ended by the provider", { ended });
        return new Response(null);
      } catch (error) {
        if (error instanceof StorageError) throw error;
        log.warn("Logout by the provider refused", { reason: reasonOf(error), address: clientAddress(request) });
        throw new ApiError(400, "logout_token is not valid");
      }
    });

  /** Asks whether one user is still there. @returns whether the provider answered */
  async #check({ id, refreshToken: tried }: { id: UserId; refreshToken: string }): Promise<boolean> {
    const { store, log } = this.#deps;
    const opened = await this.#sealed.open<{ refreshToken: string }>("refresh", tried);
    if (opened === undefined) {
      log.warn("Refresh token of a user cannot be read: SECRET_KEY is another one", { userId: id });
      await store.signIns.keep(id, tried, { refreshToken: null });
      return true;
    }
    try {
      const { client, configuration } = await this.#ask();
      const { refresh_token: next } = await client.refreshTokenGrant(configuration, opened.refreshToken);
      if (next === undefined || next === opened.refreshToken) return true;
      await store.signIns.keep(id, tried, { refreshToken: await this.#sealed.seal("refresh", { refreshToken: next }) });
    } catch (error) {
      if (error instanceof StorageError) throw error;
      const said = await errorOfProvider(error);
      if (said !== "invalid_grant") {
        log.warn("Provider does not tell whether a user is still there", { userId: id, reason: reasonOf(error) });
        return said !== undefined;
      }
      if (await store.signIns.leave(id, tried)) await this.#tellLeft(id, "the provider refuses the refresh token");
    }
    return true;
  }

  async #tellLeft(userId: UserId, reason: string): Promise<void> {
    this.#deps.log.info("User switched off", { userId, reason });
    await this.#deps.endRunning(subjectOf(userId), this.#deps.clock());
  }

  /** Asks about all whose turn it is, unless the provider does not answer. */
  async #checkUsers(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const { checkMs, memberKeysDays } = this.#settings;
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      const left = await store.signIns.endUnseen(clock() - memberKeysDays * msPerDay);
      for (const id of left) await this.#tellLeft(id, "no sign-in for MEMBER_KEYS_DAYS");
      for (;;) {
        const now = clock();
        const user = await store.signIns.claim(now - checkMs, now);
        if (user === undefined) return;
        if (await this.#check(user)) continue;
        // After the others, whom it may answer about.
        this.#known = undefined;
        await store.signIns.keep(user.id, user.refreshToken, { checkedAt: now - checkMs + msPerMinute });
        return;
      }
    } catch (error) {
      log.warn("Users of the provider not checked", { error: String(error) });
    } finally {
      this.#isChecking = false;
    }
  }
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
  ({ request }: Pick<Context, "request">): Promise<Response> =>
    provider.logOut(request);

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

/** What the provider says is wrong; undefined if it does not answer. */
async function errorOfProvider(error: unknown): Promise<string | undefined> {
  const { ResponseBodyError } = await loadClient();
  return error instanceof ResponseBodyError ? error.error : undefined;
}

/** What the provider did not answer, or answered in a way that no client can use. */
const unanswered = /^OAUTH_(TIMEOUT|ABORT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON|PARSE_ERROR)$/;

async function problemOf(error: unknown): Promise<SignInProblem> {
  const { AuthorizationResponseError, ClientError } = await loadClient();
  if (error instanceof AuthorizationResponseError) return "refused";
  const said = await errorOfProvider(error);
  if (said !== undefined) return said === "invalid_grant" ? "expired" : "invalid";
  const isInvalid = error instanceof ClientError && error.code !== undefined && !unanswered.test(error.code);
  return isInvalid ? "invalid" : "unreachable";
}

/** For the log: what the packages say, and not what they were given. */
export function reasonOf(error: unknown): string {
  const { message, error: code, cause } = Object(error) as { message?: unknown; error?: unknown; cause?: unknown };
  const inner = cause instanceof Error ? `: ${cause.message}` : "";
  return `${String(message)}${typeof code === "string" ? ` (${code})` : inner}`;
}
