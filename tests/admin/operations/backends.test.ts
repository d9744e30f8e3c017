import { expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { bucketOf } from "../../../src/domain/histogram.ts";
import { minuteOf } from "../../../src/time/seoul.ts";
import type { RequestRecord } from "../../../src/domain/requests.ts";
import { requestRow, requestsOf } from "../../store/logged-requests.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";

const catalog = fileCatalog(
  [
    backendOf("gpu-a", { url: "http://user:pw@10.0.0.11:8000/v1?key=secret", maxConcurrency: 64 }),
    backendOf("odd / name", { url: "unix:/run/engine.sock", spill: true }),
  ],
  [modelOf("chat", ["gpu-a", "odd / name"]), modelOf("embed", ["odd / name"])],
  { file: { path: "models.yaml", hash: "abc" } },
);

onEachEngine(({ engine }) => {
  const told: unknown[] = [];
  const admin: Admin = shared(() =>
    startAdmin({
      engine,
      catalog: () => catalog,
      discoveredModels: () => [{ name: "found", backends: ["gpu-a"] }],
      backendStates: async () => [
        { name: "gpu-a", state: "out", since: admin.time.now - 5000, inFlight: 3, waiting: 2 },
        { name: "left the file", state: "in", since: 0, inFlight: 0, waiting: 0 },
      ],
      setDraining: async (...args) => void told.push(args.slice(0, 3)),
    }),
  );
  const owner = shared(() => admin.login());

  const list = async () => (await admin.send("GET", "/api/backends", { as: owner })).json;

  test("backends are listed in the order of the file, with what the last hour brought", async () => {
    const minute = minuteOf(admin.time.now);
    const sums = {
      requestCount: 20,
      errorCount: 2,
      inputTokens: 400,
      cachedTokens: 100,
      expectedTokens: 120,
      regretTokens: 20,
      outputTokens: 90,
    };
    const firstByte = `${bucketOf(100)}:18 ${bucketOf(2000)}:2`;
    const figures = { ...sums, streamedTokens: 80, streamedUs: 2_000_000, firstByte };
    const rows = [minute, minute - 59, minute - 60].map((at) =>
      Object.assign({ minute: at, backend: "gpu-a" }, figures),
    );
    const yesterday = { minute: minute - 24 * 60, backend: "gpu-a", ...figures, cachedTokens: 300 };
    await admin.store.traffic.add({ latencies: [], outcomes: [], backends: [...rows, yesterday] });
    const read = (inputTokens: number, fields: Partial<RequestRecord>, cachedInputTokens = 0) =>
      requestRow(
        admin.time.now,
        { backend: "gpu-a", streamed: true, queueMs: 50, ...fields },
        { inputTokens, outputTokens: 5, cachedInputTokens },
      );
    const requests = requestsOf(
      read(8000, { firstByteMs: 450 }),
      read(9000, { firstByteMs: 100 }, 8000),
      read(999, { firstByteMs: 5000 }),
      read(9000, { firstByteMs: 5000 }, 8500),
      read(9000, { firstByteMs: 5000, streamed: false }),
      read(9000, { firstByteMs: undefined }),
      read(9000, { firstByteMs: 5000, backend: "odd" }),
    );
    await admin.store.usage.add([], undefined, [], requests);
    await admin.store.backends.usesFile({ name: "host/7", fileHash: "older" });
    const { file_hash: hash, instances, backends } = await list();
    expect([hash, instances]).toEqual(["abc", [{ name: "host/7", file_hash: "older" }]]);
    const [first, second] = backends;
    expect(first).toMatchObject({
      name: "gpu-a",
      url: "http://10.0.0.11:8000/v1",
      models: ["chat", "found"],
      state: "out",
      since: "2026-05-01T11:59:55.000+09:00",
      in_flight: 3,
      waiting: 2,
      max_concurrency: 64,
      spill: false,
      requests_1h: 40,
      errors_1h: 4,
      output_tokens_per_second: 40,
      cached_share: 0.25,
      cached_share_day_before: 0.75,
      // Of 8,000 and 1,000 tokens in 450 ms; short ones, cached ones and whole answers tell nothing.
      prefill_tokens_per_second: 20_000,
      expected_cached_share: 0.3,
      regret_share: 0.05,
    });
    expect(Math.abs(first.first_byte_p50_ms - 100)).toBeLessThan(4);
    expect(Math.abs(first.first_byte_p95_ms - 2000)).toBeLessThan(70);
    const points = first.first_byte_points_ms as (number | null)[];
    expect(points.map((one) => one !== null)).toEqual([true, ...Array<boolean>(18).fill(false), true]);
    for (const at of [0, 19]) expect(Math.abs((points[at] ?? 0) - 100)).toBeLessThan(4);
    expect(second).toEqual({
      name: "odd / name",
      url: "unix:/run/engine.sock",
      models: ["chat", "embed"],
      state: "in",
      since: "2026-05-01T12:00:00.000+09:00",
      failing_since: null,
      taken_out_by: null,
      in_flight: 0,
      waiting: 0,
      max_concurrency: null,
      spill: true,
      requests_1h: 0,
      errors_1h: 0,
      first_byte_p50_ms: null,
      first_byte_p95_ms: null,
      first_byte_points_ms: Array(20).fill(null),
      prefill_tokens_per_second: null,
      output_tokens_per_second: null,
      cached_share: null,
      cached_share_day_before: null,
      expected_cached_share: null,
      regret_share: null,
    });
  });

  test("a backend that drains does so since it was told to, also for a process that started later", async () => {
    const since = admin.time.now - 60_000;
    await admin.store.backends.drain({ backend: "odd / name", since, username: "admin" });
    expect((await list()).backends[1].since).toBe("2026-05-01T11:59:00.000+09:00");
    await admin.store.backends.undrain("odd / name");
  });

  const patch = (name: string, json: unknown, as: Visitor = owner) =>
    admin.send("PATCH", `/api/backends/${encodeURIComponent(name)}`, { as, json });

  test("an administrator drains a backend, which is logged with who did it", async () => {
    told.length = 0;
    for (const draining of [true, false]) expect((await patch("odd / name", { draining })).json).toEqual({ ok: true });
    const by = { actor: "admin (password)", action: "backend.update", id: "odd / name" };
    expect(told).toMatchObject([
      ["odd / name", true, by],
      ["odd / name", false, by],
    ]);
    const lines = admin.logged.slice(-2).map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toMatchObject([
      { message: "Backend drains: it gets no new requests", backend: "odd / name", username: "admin" },
      { message: "Backend gets requests again", backend: "odd / name", username: "admin" },
    ]);
  });

  test.each([
    ["left the file", { draining: true }, 404, "Backend not found"],
    ["gpu-a", {}, 400, "draining must be true or false"],
    ["gpu-a", { draining: "yes" }, 400, "draining must be true or false"],
  ])("of %s, %j is refused", async (name, json, status, error) => {
    told.length = 0;
    const response = await patch(name, json);
    expect([response.status, response.json, told]).toEqual([status, { error }, []]);
  });
});
