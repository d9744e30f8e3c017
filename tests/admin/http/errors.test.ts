import { expect, test } from "bun:test";
import { startAdmin } from "../support/admin-server.ts";
import { StorageError } from "../../../src/store/storage-error.ts";

/** Fails at the first chunk. */
const failing = (error: Error): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => {
      throw error;
    },
  }),
});

test("a route that needs unavailable storage responds with 503, and its cause appears only in the log", async () => {
  const broken = await startAdmin({
    store: (real) => ({
      ...real,
      keys: { ...real.keys, list: () => Promise.reject(new StorageError("disk full at /var/lib/tollgate")) },
      usage: {
        ...real.usage,
        daily: () => failing(new StorageError("database is locked")),
      },
    }),
  });
  const { cookie } = await broken.login();
  for (const path of ["/api/keys", "/api/usage/daily"]) {
    const response = await broken.send("GET", path, { as: { cookie } });
    expect([response.status, response.text]).toEqual([
      503,
      '{"error":"The database is not available, try again later"}',
    ]);
    expect(response.headers.get("retry-after")).toBe("5");
  }
  expect(broken.logged.join("")).toContain("database is locked");
  await broken.stop();
});

test("an internal failure shows its cause in the log and not to the client", async () => {
  const broken = await startAdmin({
    store: (real) => ({
      ...real,
      keys: { ...real.keys, list: () => Promise.reject(new Error("at /home/us: inside")) },
    }),
  });
  const response = await fetch(`${broken.origin}/api/keys`, { headers: { cookie: (await broken.login()).cookie } });
  expect([response.status, await response.text()]).toEqual([500, '{"error":"Internal error"}']);
  expect(broken.logged.join("")).toContain("inside");
  await broken.stop();
});
