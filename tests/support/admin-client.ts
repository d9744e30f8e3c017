/** The admin's password in tests. */
export const password = "correct horse battery staple";

/** Its hash at the lowest cost: with that of the product, the start of a server and a login take 50 ms of CPU each. */
export const quickPasswordHash: string = Bun.password.hashSync(password, {
  algorithm: "argon2id",
  memoryCost: 8,
  timeCost: 1,
});

export type AdminClient = ReturnType<typeof clientWith>;

/** A key as the admin API lists it. */
export interface ListedKey {
  id: number;
  /** In full in the response to its creation, masked later. */
  key: string;
  name: string;
  is_active: boolean;
  created_at: string;
  last_used_at: string | null;
  total_request_count: number;
  total_input_tokens: number;
  total_output_tokens: number;
  total_estimated_tokens: number;
  /** What counts against each limit; null for one that the key does not have. */
  used: Record<string, number | null>;
}

/** @throws Error if the login is refused */
export async function logIn(adminUrl: string, username: string, secret: string): Promise<AdminClient> {
  const login = await fetch(`${adminUrl}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username, password: secret }),
  });
  if (!login.ok) throw new Error(`Login: ${login.status} ${await login.text()}`);
  const { csrf_token: csrfToken } = (await login.json()) as { csrf_token: string };
  // By hand, because the cookie is restricted to HTTPS and tests use plain HTTP on loopback.
  const setCookie = login.headers.getSetCookie().find((line) => line.startsWith("session="));
  return clientWith(adminUrl, setCookie?.split(";", 1)[0] ?? "", csrfToken);
}

/** A console session, as a browser has it. */
export function clientWith(adminUrl: string, cookie: string, csrfToken: string) {
  const request = (method: string, path: string, body?: unknown): Promise<Response> => {
    const headers: Record<string, string> = { cookie };
    if (method !== "GET" && method !== "HEAD") headers["x-csrf-token"] = csrfToken;
    if (body === undefined) return fetch(adminUrl + path, { method, headers });
    headers["content-type"] = "application/json";
    return fetch(adminUrl + path, { method, headers, body: JSON.stringify(body) });
  };
  const expectOk = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await request(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  return {
    csrfToken,
    /** `session=…`, for the Cookie header. */
    cookie,
    /** Sends a request with the session's cookie, a body as JSON, and with the CSRF token if it is a write. */
    request,
    /** Like `request`, but returns the JSON body. @throws Error with status and body if the status is not 2xx */
    expectOk,
    createKey: (name: string, fields?: object) => expectOk<ListedKey>("POST", "/api/keys", { name, ...fields }),
    listKeys: () => expectOk<ListedKey[]>("GET", "/api/keys"),
    updateKey: (id: number, fields: Record<string, unknown>) => expectOk<ListedKey>("PATCH", `/api/keys/${id}`, fields),
    async deleteKey(id: number): Promise<void> {
      await expectOk("DELETE", `/api/keys/${id}`);
    },
  };
}
