import { afterAll, describe, expect, test } from "bun:test";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const megabyte = 1024 * 1024;
const password = "correct horse battery staple";
const environment = {
  PROXY_UPSTREAM_URL: "http://127.0.0.1:1",
  ADMIN_PASSWORD: password,
  TRUST_PROXY: "1",
  LOG_LEVEL: "error",
  SHUTDOWN_GRACE: "1",
};
const program = shared(() => startProgram(environment));

/** What the allocator keeps for ten seconds would hide what the program does. */
const purgesSoon = { MIMALLOC_PURGE_DELAY: "100", MIMALLOC_PURGE_HOLES_MIN_INTERVAL: "100" };

const randomByte = (): number => 1 + Math.floor(Math.random() * 254);
const randomAddress = (): string => `198.${randomByte()}.${randomByte()}.${randomByte()}`;

const attempt = (address: string, given: string): Promise<Response> =>
  fetch(`${program.adminUrl}/api/login`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-forwarded-for": address },
    body: JSON.stringify({ username: "admin", password: given }),
  });

describe("half-sent bodies of strangers", () => {
  const withLength = (bytes: number): string => `Content-Length: ${bytes}\r\n\r\n${"x".repeat(bytes - 1)}`;
  const chunked = (bytes: number): string =>
    `Transfer-Encoding: chunked\r\n\r\n${bytes.toString(16)}\r\n${"x".repeat(bytes - 1)}`;

  async function sendHalf(path: string, framing: string, { adminUrl } = program): Promise<RawClient> {
    const client = await connectRaw(adminUrl, { keepBody: false });
    const headers = ["Host: h", "Content-Type: application/json", `X-Forwarded-For: ${randomAddress()}`];
    client.send(`POST ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n${framing}`);
    return client;
  }

  /** Whether the server waits for the rest of its body, or did so until the time was over. */
  const isRead = (client: RawClient): boolean => /^(HTTP\/1.1 408|$)/.test(client.received().toString().slice(0, 12));

  test.each([
    ["/api/login", "64 KiB", withLength(65_536), 0],
    ["/api/login", "8 KiB", withLength(8192), 96],
    ["/api/login", "64 KiB in chunks", chunked(65_536), 0],
    ["/api/keys", "64 KiB", withLength(65_536), 0],
    ["/api/gpu-stats", "64 KiB in chunks", chunked(65_536), 0],
  ])("to %s of %s leave memory flat, because few are read at once", async (path, _, framing, places) => {
    // Of its own, and all stay open: memory that an earlier flood has left would hide what this one takes.
    const flooded = await startProgram({ ...environment, ...purgesSoon });
    await using ended = new AsyncDisposableStack();
    ended.defer(async () => void (await flooded.stop("SIGKILL")));
    const clients: RawClient[] = [];
    const flood = async (count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent += 1) clients.push(await sendHalf(path, framing, flooded));
    };
    const unread = (): number => clients.filter((client) => client.received().length === 0).length;
    const startedAt = performance.now();
    // The first ones compile code and grow the heap.
    await flood(500);
    await pollUntil(() => unread() <= places);
    const before = flooded.rssBytes();
    let growth = Infinity;
    // What waits for a garbage collection looks like growth, but for seconds, and not more with each round.
    for (let look = 0; look < 300 && growth >= 20 * megabyte; look += 1) {
      if (look % 60 === 0) await flood(2000);
      await pollUntil(() => unread() <= places);
      growth = (flooded.rssBytes() - before) / Math.ceil((look + 1) / 60);
      await Bun.sleep(50);
    }
    const turns = 1 + Math.ceil((performance.now() - startedAt) / 5000);
    expect(clients.filter(isRead).length).toBeLessThanOrEqual(places * turns);
    expect(growth).toBeLessThan(20 * megabyte);
  });

  test("to /api/login that take all places leave some to an address that logged in before", async () => {
    expect((await attempt("203.0.113.9", password)).status).toBe(200);
    const clients: RawClient[] = [];
    for (let sent = 0; sent < 200; sent += 1) clients.push(await sendHalf("/api/login", withLength(100)));
    expect((await attempt(randomAddress(), password)).status).toBe(429);
    expect((await attempt("203.0.113.9", password)).status).toBe(200);
    for (const client of clients) client.reset();
  });

  test("to /api/login get 408 after 5 seconds", async () => {
    const startedAt = performance.now();
    const client = await sendHalf("/api/login", withLength(100));
    expect((await client.head()).status).toBe(408);
    expect(performance.now() - startedAt).toBeGreaterThan(4900);
    client.close();
  });
});

describe("a flood of logins from many addresses", () => {
  const over = new AbortController();
  let refused = 0;
  let flood: Promise<void>[] = [];

  const start = (connections: number): void => {
    flood = Array.from({ length: connections }, async () => {
      while (!over.signal.aborted) {
        const response = await attempt(randomAddress(), "wrong");
        if (response.status === 429) refused += 1;
        await response.body?.cancel();
      }
    });
  };
  afterAll(async () => {
    over.abort();
    await Promise.all(flood);
  });

  test("leaves room for an address that logged in before, and for a live session", async () => {
    expect((await attempt("203.0.113.7", password)).status).toBe(200);
    const { cookie } = await logIn(program.adminUrl, "admin", password);
    start(64);
    await pollUntil(() => refused > 50);
    for (let round = 0; round < 6; round += 1) expect((await attempt("203.0.113.7", password)).status).toBe(200);
    const withSession = await fetch(`${program.adminUrl}/api/login`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": "203.0.113.8", cookie },
      body: JSON.stringify({ username: "admin", password }),
    });
    expect(withSession.status).toBe(200);
    expect(refused).toBeGreaterThan(100);
  });
});
