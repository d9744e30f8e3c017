import { afterAll, beforeAll, expect, test } from "bun:test";
import { onEachEngine } from "../../store/each-engine.ts";
import { backendOf, fileCatalog } from "../../support/catalog.ts";
import { type Admin, startAdmin } from "../support/admin-server.ts";
import { StorageError } from "../../../src/store/storage-error.ts";

onEachEngine(({ engine }) => {
  let admin: Admin;
  let writable = true;
  let checks = 0;
  let upstream = true;
  let limits: "ok" | "degraded" = "ok";
  let counts: "ok" | "waiting" | "partly refused" = "ok";
  beforeAll(async () => {
    admin = await startAdmin({
      engine,
      probeUpstream: async () => ({ ok: upstream }),
      countsState: () => counts,
      limitsState: () => limits,
      store: (real) => ({
        ...real,
        checkWritable: async () => {
          checks += 1;
          if (!writable) throw new StorageError("disk full at /var/lib/tollgate");
          await real.checkWritable();
        },
      }),
    });
  });
  afterAll(() => admin.stop());

  test("GET /healthz responds with 200 even if the database is down", async () => {
    writable = false;
    const response = await admin.send("GET", "/healthz");
    expect([response.status, response.text]).toEqual([200, '{"status":"ok"}']);
    writable = true;
  });

  test.each([
    [true, true, 200, { status: "ready", database: "ok", upstream: "ok", counts: "ok", limits: "ok" }],
    [true, false, 200, { status: "ready", database: "ok", upstream: "not answering", counts: "ok", limits: "ok" }],
    [false, true, 503, { status: "unavailable", database: "not writable", upstream: "ok", counts: "ok", limits: "ok" }],
  ])("GET /readyz with a writable database %p and a backend %p", async (database, backend, status, body) => {
    [writable, upstream] = [database, backend];
    admin.time.now += 10_000;
    const response = await admin.send("GET", "/readyz");
    expect([response.status, response.json]).toEqual([status, body]);
  });

  test.each(["waiting", "partly refused"] as const)(
    "GET /readyz responds with 200 while counts are %s",
    async (state) => {
      [writable, upstream, counts] = [true, true, state];
      admin.time.now += 10_000;
      const response = await admin.send("GET", "/readyz");
      counts = "ok";
      expect([response.status, response.json]).toEqual([
        200,
        { status: "ready", database: "ok", upstream: "ok", counts: state, limits: "ok" },
      ]);
    },
  );

  test("GET /readyz says that the limits of keys hold only in part", async () => {
    [writable, upstream, limits] = [true, true, "degraded"];
    admin.time.now += 10_000;
    const response = await admin.send("GET", "/readyz");
    limits = "ok";
    expect([response.status, response.json]).toMatchObject([200, { status: "ready", limits: "degraded" }]);
  });

  test("GET /readyz lists the backends of a file, and is ready though all are out", async () => {
    const status = { state: "out" as const, since: 0, inFlight: 0, waiting: 0 };
    const withFile = await startAdmin({
      catalog: () => fileCatalog([backendOf("gpu-a"), backendOf("gpu-b")], []),
      backendStates: async () => ["gpu-a", "gpu-b"].map((name) => Object.assign({ name }, status)),
      probeUpstream: async () => ({ ok: false, cause: "none_in" }),
    });
    const { status: code, json } = await withFile.send("GET", "/readyz");
    await withFile.stop();
    const backends = ["gpu-a", "gpu-b"].map((name) => ({ name, state: "out" }));
    expect([code, json]).toMatchObject([200, { status: "ready", upstream: "not answering", backends }]);
  });

  test("GET /readyz is ready without backends while the process that knows them does not reply", async () => {
    const withFile = await startAdmin({
      catalog: () => fileCatalog([backendOf("gpu-a"), backendOf("gpu-b")], []),
      backendStates: () => Promise.reject(new Error("no reply to listBackends in time")),
    });
    const { status, json } = await withFile.send("GET", "/readyz");
    await withFile.stop();
    expect([status, json]).toEqual([
      200,
      { status: "ready", database: "ok", upstream: "ok", counts: "ok", limits: "ok" },
    ]);
  });

  test("GET /readyz looks anew after the clock was set back by hours", async () => {
    [writable, upstream] = [true, true];
    admin.time.now += 10_000;
    expect((await admin.send("GET", "/readyz")).status).toBe(200);
    [writable, upstream] = [false, false];
    admin.time.now -= 3 * 3_600_000;
    const { status, json } = await admin.send("GET", "/readyz");
    [writable, upstream] = [true, true];
    expect([status, json]).toMatchObject([503, { database: "not writable", upstream: "not answering" }]);
  });

  test("GET /readyz writes to the database at most once a second", async () => {
    admin.time.now += 10_000;
    checks = 0;
    await Promise.all(Array.from({ length: 20 }, () => admin.send("GET", "/readyz")));
    expect(checks).toBe(1);
  });
});
