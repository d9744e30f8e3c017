/** A console session, as a browser would hold it. */
export interface AdminClient {
  csrfToken: string;
  /** `session=…`, as the Cookie header has it. */
  cookie: string;
  /** Any request of the session; a body is sent as JSON, and writes carry the CSRF token. */
  request(method: string, path: string, body?: unknown): Promise<Response>;
  /** @throws Error where the answer is not 2xx */
  get<T>(path: string): Promise<T>;
  createKey(name: string, key?: string): Promise<CreatedKey>;
  setKeyActive(id: number, isActive: boolean): Promise<void>;
  /** Totals of one key, from the list. */
  keyTotals(id: number): Promise<KeyTotals>;
}

export interface CreatedKey {
  id: number;
  /** In full. */
  key: string;
  name: string;
}

export interface KeyTotals {
  total_request_count: number;
  total_input_tokens: number;
  total_output_tokens: number;
}

/** @throws Error where the login is refused */
export async function login(adminUrl: string, password: string, username = "admin"): Promise<AdminClient> {
  const answer = await fetch(`${adminUrl}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username, password }),
  });
  if (!answer.ok) throw new Error(`Login: ${answer.status} ${await answer.text()}`);
  const { csrf_token: csrfToken } = (await answer.json()) as { csrf_token: string };
  // By hand: the cookie is for HTTPS alone, and tests speak plain HTTP on loopback.
  const cookie =
    answer.headers
      .getSetCookie()
      .find((line) => line.startsWith("session="))
      ?.split(";", 1)[0] ?? "";

  const request = (method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(adminUrl + path, {
      method,
      headers: {
        cookie,
        ...(["GET", "HEAD"].includes(method) ? {} : { "x-csrf-token": csrfToken }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const expectOk = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await request(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  return {
    csrfToken,
    cookie,
    request,
    get: (path) => expectOk("GET", path),
    createKey: (name, key) => expectOk("POST", "/api/keys", { name, ...(key === undefined ? {} : { key }) }),
    setKeyActive: (id, isActive) => expectOk("PATCH", `/api/keys/${id}`, { is_active: isActive }),
    async keyTotals(id) {
      const keys = await expectOk<(KeyTotals & { id: number })[]>("GET", "/api/keys");
      const key = keys.find((candidate) => candidate.id === id);
      if (key === undefined) throw new Error(`There is no key ${id}`);
      return key;
    },
  };
}
