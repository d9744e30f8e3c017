import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { runProgram } from "../support/program.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(whyNoPostgres !== undefined)("while PostgreSQL is away", () => {
  const backend = shared(() => startSimulator());
  const postgres = shared(() => startPostgres());

  const start = async (options: { clock?: () => number } = {}): Promise<Tollgate> =>
    startTollgate({ PROXY_UPSTREAM_URL: backend.url, DATABASE_URL: await postgres.createDatabase() }, options);

  const post = (gate: Tollgate, key = gate.key): Promise<Response> =>
    gate.send("/v1/chat/completions", { model: "m", messages: [] }, { key, script: "usage=3,4" });

  /** @returns also the duration in ms. No request may wait for the database longer than two seconds; a loaded machine is slower. */
  async function timed<T>(act: () => Promise<T>): Promise<[T, number]> {
    const begun = performance.now();
    return [await act(), performance.now() - begun];
  }

  /** PostgreSQL either refuses connections, or accepts them and does not respond. */
  const absences: [string, () => Promise<() => Promise<void>>][] = [
    [
      "is stopped",
      async () => {
        await postgres.stop();
        return postgres.start;
      },
    ],
    [
      "does not respond",
      async () => {
        await postgres.freeze();
        return postgres.thaw;
      },
    ],
  ];

  test.each(absences)(
    "because it %s, known keys are accepted, others get 503, and counts are written once later",
    async (_, leave) => {
      let now = Date.now();
      await using gate = await start({ clock: () => now });
      const unused = (await gate.admin.createKey("never used")).key;
      expect((await post(gate)).status).toBe(200);
      const comeBack = await leave();

      for (let n = 0; n < 5; n++) {
        const [response, ms] = await timed(() => post(gate));
        expect([response.status, ms < 4000]).toEqual([200, true]);
        await response.text();
      }
      const [refused, refusedMs] = await timed(() => post(gate, unused));
      expect(refused.status).toBe(503);
      expect(refused.headers.get("retry-after")).toBe("1");
      expect(await refused.json()).toMatchObject({ error: { code: "storage_unavailable" } });
      expect(refusedMs).toBeLessThan(4000);
      const [stored, storedMs] = await timed(() => gate.send("/v1/responses/resp_1"));
      expect([stored.status, stored.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(storedMs).toBeLessThan(4000);
      const [ready, readyMs] = await timed(() => fetch(`${gate.adminUrl}/readyz`));
      expect(ready.status).toBe(503);
      expect(await ready.json()).toMatchObject({ status: "unavailable", states: [{ kind: "database_away" }] });
      expect(readyMs).toBeLessThan(4000);
      const [listing, listingMs] = await timed(() => gate.admin.request("GET", "/api/keys"));
      expect(listing.status).toBe(503);
      expect(listing.headers.get("retry-after")).toBe("5");
      expect(await listing.json()).toEqual({ error: "The database is not available, try again later" });
      expect(listingMs).toBeLessThan(4000);
      now += 5 * 60_000 + 1;
      expect((await post(gate)).status).toBe(503);

      await comeBack();
      await pollUntil(async () => (await fetch(`${gate.adminUrl}/readyz`)).status === 200);
      await pollUntil(async () => (await gate.readKey()).total_request_count >= 6);
      expect((await post(gate, unused)).status).toBe(200);
      expect(await gate.readKey()).toMatchObject({ total_request_count: 6, total_input_tokens: 18 });
    },
  );

  test("a cut connection fails no request", async () => {
    await using gate = await start();
    for (let round = 0; round < 5; round++) {
      const responses = Array.from({ length: 8 }, async () => (await post(gate)).status);
      await postgres.cutConnections();
      expect(new Set(await Promise.all(responses))).toEqual(new Set([200]));
    }
    await pollUntil(async () => (await gate.readKey()).total_request_count >= 40);
    expect((await gate.readKey()).total_request_count).toBe(40);
  });

  test("a start fails with one line that does not contain the password", async () => {
    const url = "postgres://tollgate:hush@127.0.0.1:1/tollgate";
    const finished = await runProgram(["serve"], { DATABASE_URL: url, SECRET_KEY: "0123456789abcdef" });
    expect(finished.status).toBe(1);
    expect(finished.stderr).toMatch(
      /^tollgate: DATABASE_URL: PostgreSQL at 127\.0\.0\.1:1\/tollgate cannot be reached [^\n]*\n$/,
    );
    expect(finished.stderr + finished.stdout).not.toContain("hush");
  });
});

test("backup refers to pg_dump for PostgreSQL", async () => {
  const environment = { DATABASE_URL: "postgres://u:hush@127.0.0.1:1/t", SECRET_KEY: "0123456789abcdef" };
  const finished = await runProgram(["backup", "copy"], environment);
  expect(finished.status).toBe(1);
  expect(finished.stderr).toBe(
    "tollgate: DATABASE_URL: backup copies only a data folder; use pg_dump for PostgreSQL (handbook: Backups)\n",
  );
});
