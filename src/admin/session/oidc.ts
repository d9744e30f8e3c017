// Sign-in by OpenID Connect: openid-client does the code flow, jose the logout tokens, which that does not check.
//
//   begun: state, nonce and verifier in a sealed cookie -> the provider -> returned: code -> ID token -> user, role, team -> session
//
// It keeps true: without an issuer nothing of this runs, and neither package is loaded. Addresses are made of settings,
// never of `Host`. A user is `iss` and `sub`; names and e-mail addresses are labels. Role and team are those of the
// latest sign-in. A provider that does not answer changes nothing; only its `invalid_grant` for a refresh token says that
// somebody has left. Refresh tokens are sealed as the cookie is. Keys of the provider are fetched anew for each sign-in,
// so that it may exchange them at any time; for logouts, which anyone may send, twice a minute at most.

import { hkdfSync } from "node:crypto";
import type { JWTPayload, JWTVerifyGetKey } from "jose";
import { redirect } from "elysia";
import type { Configuration } from "openid-client";
import type { AdminDeps } from "../http/deps.ts";
import type { Role } from "../../domain/changes.ts";
import { subjectOf, type UserId } from "../../domain/keys.ts";
import { msPerDay, msPerMinute } from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { readAtMost } from "../http/body.ts";
import { createConcurrencyLimit } from "./concurrency-limit.ts";
import { type CookieContext, sessionCookie } from "./cookie.ts";
import type { Sessions } from "./session.ts";
import { StorageError } from "../../store/storage-error.ts";
import { withoutControls } from "../../log/log.ts";

export type SignInSettings = NonNullable<AdminDeps["signIn"]>;

const toleranceSeconds = 60;
const providerTimeoutSeconds = 10;
const metadataMs = 10 * 60_000;
const begunSeconds = 600;
const maxNameLength = 120;
/** Of those who wait for the provider, and of its logouts: anyone can have it asked. */
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

/** What the provider says that it can do. @throws what openid-client throws */
export async function discover({ issuer, clientId }: Pick<SignInSettings, "issuer" | "clientId">) {
  const client = await import("openid-client");
  const execute = issuer.startsWith("http:") ? [client.allowInsecureRequests] : [];
  const options = { execute, timeout: providerTimeoutSeconds };
  return (await client.discovery(new URL(issuer), clientId, undefined, undefined, options)).serverMetadata();
}

const waiting = () => {
  const limit = createConcurrencyLimit(waitLimits);
  /** @throws ApiError 503 */
  return async <T extends object>(work: () => Promise<T>): Promise<T> => {
    const done = await limit.run(true, work);
    if (done === undefined) throw new ApiError(503, "Too many wait for the provider", { "retry-after": "1" });
    return done;
  };
};

type ProviderDeps = AdminDeps & { sessions: Pick<Sessions, "start"> };

export class Provider {
  readonly #settings: SignInSettings;
  readonly #deps: ProviderDeps;
  /** By SECRET_KEY. */
  readonly #sealingKey: Uint8Array;
  readonly #ofBrowsers = waiting();
  readonly #ofLogouts = waiting();
  #known: { metadata: ReturnType<Configuration["serverMetadata"]>; keys: JWTVerifyGetKey; at: number } | undefined;
  #isChecking = false;

  constructor(settings: SignInSettings, deps: ProviderDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.#sealingKey = new Uint8Array(hkdfSync("sha256", deps.signingKey, "", "tollgate sign-in", 32));
    deps.every(Math.min(settings.checkMs, msPerMinute), () => this.#checkUsers());
  }

  /** @param tolerance between the clocks, in seconds @returns a configuration that knows no keys yet, too */
  async #ask(tolerance = toleranceSeconds) {
    const { clock } = this.#deps;
    const { issuer, clientId, clientSecret } = this.#settings;
    const client = await import("openid-client");
    if (this.#known === undefined || Math.abs(clock() - this.#known.at) > metadataMs) {
      const metadata = await discover(this.#settings);
      const { createRemoteJWKSet } = await import("jose");
      const keys = createRemoteJWKSet(new URL(metadata.jwks_uri ?? metadata.issuer));
      this.#known = { metadata, keys, at: clock() };
    }
    const { metadata, keys } = this.#known;
    const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    const authentication = methods.includes("client_secret_basic") ? client.ClientSecretBasic : client.ClientSecretPost;
    const skew = Math.round((clock() - Date.now()) / 1000);
    const clocks = { [client.clockTolerance]: tolerance, [client.clockSkew]: skew };
    const configuration = new client.Configuration(metadata, clientId, clocks, authentication(clientSecret));
    configuration.timeout = providerTimeoutSeconds;
    if (issuer.startsWith("http:")) client.allowInsecureRequests(configuration);
    return { client, metadata, keys, configuration };
  }

  /** Encrypts and signs, for one use. */
  async #seal(use: string, value: JWTPayload): Promise<string> {
    const { EncryptJWT } = await import("jose");
    const token = new EncryptJWT({ ...value, aud: use }).setProtectedHeader({ alg: "dir", enc: "A256GCM" });
    return await token.encrypt(this.#sealingKey);
  }

  /** Undefined: it was not sealed here, for this use, or its time is over. */
  async #open<T>(use: string, text: unknown): Promise<T | undefined> {
    const { jwtDecrypt } = await import("jose");
    const options = { audience: use, currentDate: new Date(this.#deps.clock()) };
    return await jwtDecrypt<T>(String(text), this.#sealingKey, options).then(
      ({ payload }) => payload,
      () => undefined,
    );
  }

  get #redirectUri(): string {
    return this.#settings.consoleUrl + signInPath;
  }

  /** Begins a sign-in, or ends the one from which the provider sends the browser back. */
  goThrough = async ({ request, cookie: { session: cookie, [begunCookie]: kept } }: CookieContext) => {
    const query = new URL(request.url).searchParams;
    const keep = (value: string, maxAge: number) => kept?.set({ ...cookieAttributes, value, maxAge });
    try {
      return await this.#ofBrowsers(async () => {
        if (!query.has("code") && !query.has("error")) {
          const { to, keeps } = await this.#begin(query.get("next") ?? "/");
          keep(keeps, begunSeconds);
          return redirect(to);
        }
        const begun: unknown = kept?.value;
        keep("", 0);
        const { session, next } = await this.#finish(request, query, begun);
        cookie?.set(sessionCookie(session));
        return redirect(`/login?${new URLSearchParams({ signed_in: "1", next })}`);
      });
    } catch (error) {
      return redirect(`/login?problem=${this.#tellProblem(request, error)}`);
    }
  };

  /** @returns where the browser goes, and what it keeps meanwhile */
  async #begin(next: string): Promise<{ to: string; keeps: string }> {
    const { client, configuration } = await this.#ask();
    const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
    const begun: Begun = { state, nonce, verifier, next: next.slice(0, 1000) };
    const to = client.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: this.#settings.scopes,
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    });
    const exp = Math.floor(this.#deps.clock() / 1000) + begunSeconds;
    return { to: to.href, keeps: await this.#seal("sign-in", { ...begun, exp }) };
  }

  /** Exchanges the code. @throws SignInError, and what openid-client throws */
  async #identify(query: URLSearchParams, begun: Begun) {
    const { client, metadata, configuration } = await this.#ask();
    client.enableNonRepudiationChecks(configuration);
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

  /** @throws what `#tellProblem` takes */
  async #finish(request: Request, query: URLSearchParams, kept: unknown) {
    const { store, sessions, log, clientAddress } = this.#deps;
    const { groupsClaim, adminGroups, viewerGroups, defaultRole, createsTeams } = this.#settings;
    const begun = await this.#open<Begun>("sign-in", kept);
    if (begun === undefined || begun.state !== query.get("state"))
      throw new SignInError("expired", "it was not begun here, or too long ago");
    const { claims, refreshToken } = await this.#identify(query, begun);
    const { iss: source, sub: external } = claims;
    const groups = textsOf(claimIn(claims, groupsClaim));
    const isIn = (others: readonly string[]): boolean => groups.some((group) => others.includes(group));
    const role: Role | "none" = isIn(adminGroups) ? "admin" : isIn(viewerGroups) ? "viewer" : defaultRole;
    if (role === "none") throw new SignInError("no_role", `none of the groups of ${external} has a role`);
    const isTeam = (group: string) =>
      group.length <= maxNameLength && ![...adminGroups, ...viewerGroups].includes(group);
    const user = await store.signIns.begin({
      source,
      external,
      name: withoutControls(nameIn(claims) ?? external).slice(0, maxNameLength),
      groups,
      newTeam: (createsTeams && groups.find(isTeam)) || null,
      refreshToken: refreshToken === undefined ? null : await this.#seal("refresh", { refreshToken }),
    });
    if (user === undefined) throw new SignInError("inactive", "an administrator has switched the user off");
    const address = clientAddress(request);
    const providerSid = textsOf(claimIn(claims, "sid"))[0] ?? null;
    const person = { userId: user.id, username: user.name, role, providerSid };
    const session = await sessions.start({ address, client: request.headers.get("user-agent"), person });
    log.info("User signed in", { userId: user.id, name: user.name, role, address });
    return { session, next: begun.next };
  }

  /** Logs why nobody was let in. @returns what of it the login page may show @throws StorageError */
  #tellProblem(request: Request, error: unknown): SignInProblem {
    if (error instanceof StorageError) throw error;
    const problem = error instanceof SignInError ? error.problem : problemOf(error);
    // Unless it was not asked at all.
    if (problem === "unreachable" && !(error instanceof ApiError)) this.#known = undefined;
    const address = this.#deps.clientAddress(request);
    this.#deps.log.warn("Sign-in refused", { problem, reason: reasonOf(error), address });
    return problem;
  }

  /** Back-channel logout: ends the sessions that its token names. @throws ApiError 400, 413, 503 */
  logOut = ({ request }: Pick<CookieContext, "request">): Promise<Response> =>
    this.#ofLogouts(async () => {
      const { store, clock, log, clientAddress } = this.#deps;
      const body = await readAtMost(request, logoutLimits);
      if (body instanceof ApiError) throw body;
      const token = new URLSearchParams(Buffer.from(body).toString()).get("logout_token") ?? "";
      try {
        const { jwtVerify } = await import("jose");
        const { metadata, keys } = await this.#ask();
        const { payload } = await jwtVerify(token, keys, {
          issuer: metadata.issuer,
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
        const ended = await store.sessions.deleteOfProvider(metadata.issuer, { external, sid });
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
    const opened = await this.#open<{ refreshToken: string }>("refresh", tried);
    if (opened === undefined) {
      log.warn("Refresh token of a user cannot be read: SECRET_KEY is another one", { userId: id });
      await store.signIns.keep(id, tried, { refreshToken: null });
      return true;
    }
    try {
      // An ID token comes too. Nothing is read from it; and if it were refused, the new refresh token would be lost, and
      // the provider refuses the old one from now on, as if the user had left.
      const { client, configuration } = await this.#ask(Number.MAX_SAFE_INTEGER);
      const { refresh_token: next } = await client.refreshTokenGrant(configuration, opened.refreshToken);
      if (next === undefined || next === opened.refreshToken) return true;
      await store.signIns.keep(id, tried, { refreshToken: await this.#seal("refresh", { refreshToken: next }) });
    } catch (error) {
      if (error instanceof StorageError) throw error;
      const { error: said } = told(error);
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
        await store.signIns.keep(user.id, user.refreshToken, { refreshCheckedAt: now - checkMs + msPerMinute });
        return;
      }
    } catch (error) {
      log.warn("Users of the provider not checked", { error: String(error) });
    } finally {
      this.#isChecking = false;
    }
  }
}

/** Sealed, in the browser. */
type Begun = Record<"state" | "nonce" | "verifier" | "next", string>;

type Claims = Readonly<Record<string, unknown>>;

/** @param path as it is, or the names of members with dots in between */
function claimIn(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path
    .split(".")
    .reduce<unknown>((value, name) => (Object.hasOwn(Object(value), name) ? Object(value)[name] : undefined), claims);
}

/** A text is one value. */
const textsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).filter((one): one is string => typeof one === "string" && one !== "");

const nameIn = (claims: Claims): string | undefined =>
  ["name", "preferred_username", "email"].flatMap((name) => textsOf(claims[name]))[0];

/** What the packages tell of what went wrong: a code of theirs, and what the provider calls it. */
const told = (error: unknown) => Object(error) as Record<"code" | "error" | "message" | "cause", unknown>;

/** The provider has answered, and in a way that a client can use. */
const answered = /^OAUTH_(?!TIMEOUT|ABORT|RESPONSE_IS_NOT_CONFORM|RESPONSE_IS_NOT_JSON|PARSE_ERROR)/;

function problemOf(error: unknown): SignInProblem {
  const { code, error: said } = told(error);
  if (code === "OAUTH_AUTHORIZATION_RESPONSE_ERROR") return "refused";
  if (said === "invalid_grant") return "expired";
  return answered.test(String(code)) ? "invalid" : "unreachable";
}

/** For the log: what the packages say, and not what they were given. */
export function reasonOf(error: unknown): string {
  const { message, error: said, cause } = told(error);
  const inner = cause instanceof Error ? `: ${cause.message}` : "";
  return `${String(message)}${typeof said === "string" ? ` (${said})` : inner}`;
}
