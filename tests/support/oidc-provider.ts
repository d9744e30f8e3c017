import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import { type AdapterPayload, type Configuration, errors, Provider } from "oidc-provider";
import { findFreePort } from "./free-port.ts";

export interface TestProvider extends AsyncDisposable {
  issuer: string;
  /** What `tollgate` needs to sign people in here. */
  settings: { OIDC_ISSUER: string; OIDC_CLIENT_ID: string; OIDC_CLIENT_SECRET: string };
  /** Whoever comes is signed in as this one, as where a session exists already. */
  person: { sub: string; claims: Record<string, unknown> };
  /** Codes that were not exchanged yet are too old. */
  expireCodes(): void;
  idTokenSeconds: number;
  /** It answers nobody, or 503. */
  isAway: boolean;
  /** Tokens are signed by other keys from now on, and no others are published. */
  rotateKeys(): Promise<void>;
  /** From now on the account is none. */
  disable(sub: string): void;
  enable(sub: string): void;
  /** Signs as it signs its tokens. */
  sign(payload: JWTPayload): Promise<string>;
  /** The token that ends the sessions of a person, or one of them; sent to the client too. @returns its status */
  logOut(sub: string, sid: string | undefined): Promise<number>;
  /** Whose refresh tokens get another error. */
  refuseRefresh: string | undefined;
  /** What it calls the sessions of the client, in order. */
  sids(): string[];
  /** Requests so far, by path. */
  requests: string[];
}

async function newKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  return { ...(await exportJWK(privateKey)), alg: "RS256", use: "sig", kid: crypto.randomUUID() };
}

/** A real provider on loopback, whose client is the console at `consoleUrl`. */
export async function startProvider(consoleUrl: string, more: Configuration = {}): Promise<TestProvider> {
  const issuer = `http://127.0.0.1:${findFreePort()}`;
  const [id, secret] = ["tollgate", "secret-of-the-client"];
  const stored = new Map<string, AdapterPayload>();
  const disabled = new Set<string>();
  let signingKey: JWK;
  let provider = await create();
  const running: TestProvider = {
    issuer,
    settings: { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: id, OIDC_CLIENT_SECRET: secret },
    person: { sub: "kim", claims: { name: "Kim" } },
    expireCodes: () => {
      for (const key of stored.keys()) if (key.startsWith("AuthorizationCode:")) stored.delete(key);
    },
    // Longer than tests set the clock of the console forward.
    idTokenSeconds: 90 * 86_400,
    isAway: false,
    refuseRefresh: undefined,
    requests: [],
    rotateKeys: async () => void (provider = await create()),
    disable: (sub) => void disabled.add(sub),
    enable: (sub) => void disabled.delete(sub),
    sign: (payload) =>
      new SignJWT(payload).setProtectedHeader({ alg: "RS256", kid: signingKey.kid ?? "" }).sign(signingKey),
    sids: () =>
      [...stored].flatMap(([name, { authorizations }]) =>
        name.startsWith("Session:") ? (authorizations?.[id]?.sid ?? []) : [],
      ),
    async logOut(sub, sid) {
      // Its types lack this.
      const client = (await provider.Client.find(id)) as
        | { backchannelLogout(sub: string, sid: string): Promise<void> }
        | undefined;
      try {
        await client?.backchannelLogout(sub, sid ?? "");
        return 200;
      } catch (error) {
        return (error as { response?: Response }).response?.status ?? 0;
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function create(): Promise<Provider> {
    class Adapter {
      constructor(readonly name: string) {}
      key = (one: string): string => `${this.name}:${one}`;
      find = async (one: string) => stored.get(this.key(one));
      findByUid = async (uid: string) => [...stored.values()].find((value) => value.uid === uid);
      findByUserCode = async () => undefined;
      upsert = async (one: string, value: AdapterPayload) => void stored.set(this.key(one), value);
      consume = async (one: string) => void Object.assign(stored.get(this.key(one)) ?? {}, { consumed: 1 });
      destroy = async (one: string) => void stored.delete(this.key(one));
      revokeByGrantId = async (grant: string) => {
        for (const [key, { grantId }] of stored) if (grantId === grant) stored.delete(key);
      };
    }
    signingKey = await newKey();
    const made = new Provider(issuer, {
      adapter: Adapter,
      jwks: { keys: [signingKey] },
      cookies: { keys: ["cookies"] },
      clients: [
        {
          client_id: id,
          client_secret: secret,
          redirect_uris: [`${consoleUrl}/login/oidc`],
          grant_types: ["authorization_code", "refresh_token"],
          backchannel_logout_uri: `${consoleUrl}/login/oidc/logout`,
          backchannel_logout_session_required: true,
        },
      ],
      claims: { openid: ["sub"], profile: ["name", "groups", "realm_access"], email: ["email"] },
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      fetch: async (url, options) => fetch(url, options),
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      rotateRefreshToken: ({ oidc }) => {
        if (oidc.account?.accountId === running.refuseRefresh) throw new errors.InvalidRequest("ask the person");
        return true;
      },
      findAccount: (_, sub) =>
        disabled.has(sub) ? undefined : { accountId: sub, claims: async () => ({ ...running.person.claims, sub }) },
      // As Keycloak, Authentik and Entra do, without a question to the person.
      issueRefreshToken: async () => true,
      loadExistingGrant: async ({ oidc }) => {
        const grant = new made.Grant({ accountId: oidc.session?.accountId ?? "", clientId: id });
        grant.addOIDCScope("openid profile email offline_access");
        await grant.save();
        return grant;
      },
      ttl: {
        AuthorizationCode: 60,
        IdToken: () => running.idTokenSeconds,
        AccessToken: 3600,
        Grant: 3600,
        Interaction: 3600,
        RefreshToken: 86_400,
        Session: 86_400,
      },
      ...more,
    });
    return made;
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    running.requests.push(request.url ?? "");
    if (running.isAway) return void response.writeHead(503).end();
    if (request.url?.startsWith("/interaction/") !== true) return await provider.callback()(request, response);
    const { sub: accountId } = running.person;
    await provider.interactionFinished(request, response, { login: { accountId, remember: false } });
  }
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), "127.0.0.1", resolve));
  return running;
}

/** Follows redirects with cookies, as a browser does, but for names that share an address. */
export class RedirectFollower {
  readonly cookies = new Map<string, Map<string, string>>();

  /** @param change sees each address before it is asked for; undefined: it stops there */
  async open(
    address: string,
    change: (url: URL) => URL | undefined = (url) => url,
  ): Promise<{ url: URL; response: Response }> {
    let url = new URL(address);
    for (;;) {
      const response = await fetch(url, { redirect: "manual", headers: { cookie: this.cookieOf(url.origin) } });
      for (const line of response.headers.getSetCookie()) this.#keep(url.origin, line);
      const to = response.headers.get("location");
      if (to === null) return { url, response };
      const next = change(new URL(to, url));
      if (next === undefined) return { url: new URL(to, url), response };
      url = next;
    }
  }

  cookieOf(origin: string): string {
    return [...(this.cookies.get(origin) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keep(origin: string, line: string): void {
    const [name = "", value = ""] = line.split(";", 1)[0]?.split(/=(.*)/s) ?? [];
    const jar = this.cookies.get(origin) ?? new Map<string, string>();
    if (value === "" || /max-age=0/i.test(line)) jar.delete(name);
    else jar.set(name, value);
    this.cookies.set(origin, jar);
  }
}
