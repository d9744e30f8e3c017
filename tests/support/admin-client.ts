/** A console session, as a browser would hold it. */
export interface AdminClient {
  csrfToken: string;
  /** `session=…`, as the Cookie header has it. */
  cookie: string;
  /** Any request of the session; a body is sent as JSON, and writes carry the CSRF token. */
  request(method: string, path: string, body?: unknown): Promise<Response>;
  /** Like `request`, for an answer that must be 2xx. @throws Error with what it was instead */
  expectOk<T>(method: string, path: string, body?: unknown): Promise<T>;
  createKey(name: string, key?: string): Promise<ListedKey>;
  listKeys(): Promise<ListedKey[]>;
  updateKey(id: number, fields: { name?: string; is_active?: boolean }): Promise<ListedKey>;
  deleteKey(id: number): Promise<void>;
}

/** A key as the admin API sends it. */
export interface ListedKey {
  id: number;
  /** In full right after it was created, masked ever after. */
  key: string;
  name: string;
  is_active: boolean;
  created_at: string;
  last_used_at: string | null;
  total_request_count: number;
  total_input_tokens: number;
  total_output_tokens: number;
}

/** @throws Error where the login is refused */
export async function logIn(adminUrl: string, username: string, password: string): Promise<AdminClient> {
  const answer = await fetch(`${adminUrl}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username, password }),
  });
  if (!answer.ok) throw new Error(`Login: ${answer.status} ${await answer.text()}`);
  const { csrf_token: csrfToken } = (await answer.json()) as { csrf_token: string };
  // By hand: the cookie is for HTTPS alone, and tests speak plain HTTP on loopback.
  const setCookie = answer.headers.getSetCookie().find((line) => line.startsWith("session="));
  const cookie = setCookie?.split(";", 1)[0] ?? "";

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
    cookie,
    request,
    expectOk,
    createKey: (name, key) => expectOk("POST", "/api/keys", key === undefined ? { name } : { name, key }),
    listKeys: () => expectOk("GET", "/api/keys"),
    updateKey: (id, fields) => expectOk("PATCH", `/api/keys/${id}`, fields),
    async deleteKey(id) {
      await expectOk("DELETE", `/api/keys/${id}`);
    },
  };
}
