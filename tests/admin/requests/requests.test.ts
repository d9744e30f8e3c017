import { beforeAll, expect, test } from "bun:test";
import { defaultRetention } from "../../../src/store/retention.ts";
import { addRequests, requestRow } from "../../store/logged-requests.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { onEachEngine } from "../../store/each-engine.ts";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

onEachEngine(({ engine }) => {
  let now: number;
  const admin = shared(() =>
    startAdmin({
      engine,
      catalog: () => fileCatalog([backendOf("gpu-b")], [modelOf("tiny", ["gpu-b"], { servedAs: "small" })]),
    }),
  );
  const owner = shared(() => admin.login());
  beforeAll(async () => {
    now = admin.time.now;
    await admin.createKey("first");
    const rows = [
      requestRow(now - 5000, { requestId: "e", outcome: "client_left", keyId: 2 }),
      requestRow(now - 4000, { requestId: "d", status: 404, keyId: 2, path: "/v1/models", clientAddress: "::1" }),
      requestRow(now - 3000, { requestId: "a", modelSent: "small" }, { inputTokens: 7, outputTokens: 3 }),
      requestRow(now - 2000, {
        requestId: "b",
        status: 504,
        outcome: "timed_out",
        code: "upstream_timeout",
        cause: "first_byte_timeout",
        durationMs: 9000,
        backend: "gpu-b",
        reason: "failover",
        sends: 2,
        clientProgram: "claude-cli/2.1.330",
        requestClass: "subagent",
      }),
      requestRow(now - 1000, {
        requestId: "c",
        status: 401,
        outcome: "refused",
        keyId: undefined,
        code: "invalid_api_key",
      }),
    ];
    await addRequests(admin.store, ...rows);
  });

  const get = (path: string) => admin.send("GET", path, { as: owner });
  const idsOf = (json: { requests: { request_id: string }[] }): string =>
    json.requests.map((one) => one.request_id).join(" ");

  /** Pages of one request. */
  async function pagesOf(query: string): Promise<string[]> {
    const pages: string[] = [];
    for (let cursor = ""; pages.length < 9 && cursor !== "null";) {
      const { json } = await get(`/api/requests?limit=1&${query}${cursor && `&cursor=${cursor}`}`);
      pages.push(idsOf(json));
      cursor = String(json.next_cursor);
    }
    return pages;
  }

  test("the log is listed latest first, with the names of the API", async () => {
    const { json } = await get("/api/requests");
    expect(json).toMatchObject({ next_cursor: null, scanned_to: null, log: { days: 7, rows: 5_000_000 } });
    expect(idsOf(json)).toBe("c b a d e");
    expect(json.requests[2]).toMatchObject({
      ended_at: "2026-05-01T11:59:57.000+09:00",
      key_id: 1,
      key_name: "first",
      model_sent: "small",
      input_tokens: 7,
      output_tokens: 3,
      queue_ms: 1.5,
      first_byte_ms: 25.25,
      changes: [],
      backend: "127.0.0.1:8000",
      reason: null,
    });
    expect(json.requests[1]).toMatchObject({
      backend: "gpu-b",
      reason: "failover",
      sends: 2,
      client: "claude-cli/2.1.330",
      class: "subagent",
    });
  });

  test.each([
    ["key_id=1", "b a"],
    ["key_id=2", "d e"],
    ["key_id=2&failed=true", "d"],
    ["model=small", "a"],
    // The name in the file of models, under which usage is counted.
    ["model=tiny", "a"],
    ["model=TINY", ""],
    ["model='; drop table request_log; --", ""],
    ["backend=gpu-b", "b"],
    ["client=claude-cli", "b"],
    ["client=claude-cli/2.1.330", "b"],
    ["client=claude", ""],
    ["client=%25", ""],
    ["class=subagent", "b"],
    ["status=5xx", "b"],
    ["status=4xx", "c d"],
    ["status=200", "a e"],
    ["outcome=timed_out", "b"],
    ["outcome=completed", "a d"],
    ["outcome=client_left", "e"],
    ["failed=true", "c b d"],
    ["path=/v1/models", "d"],
    ["address=::1", "d"],
    ["path=/v1/chat/completions&address=192.0.2.7", "c b a e"],
    ["request_id=a", "a"],
    ["request_id=a&key_id=2", ""],
    ["min_duration_ms=9000", "b"],
    ["since=2026-05-01T11:59:58%2B09:00&until=2026-05-01T02:59:59.000Z", "b"],
    ["key_id=77", ""],
    ["client=a%00", ""],
  ])("the filter %s finds %p, on pages of any length", async (query, expected) => {
    expect(idsOf((await get(`/api/requests?${query}`)).json)).toBe(expected);
    expect((await pagesOf(query)).filter(Boolean).join(" ")).toBe(expected);
  });

  test("the filter without_usage finds the responses that should have reported tokens and did not", async () => {
    const logged = await startAdmin({ engine });
    const records = ["POST", "GET"].flatMap((method) =>
      ["/v1/chat/completions", "/v1/models"].flatMap((path) =>
        [200, 204, 199, 300, 500].flatMap((status) =>
          (["completed", "client_left"] as const).flatMap((outcome) =>
            [[0, 0], [0, 1], [1, 0], undefined].map((tokens) => ({
              fields: { method, path, status, outcome },
              usage: tokens && { inputTokens: tokens[0] ?? 0, outputTokens: tokens[1] ?? 0 },
            })),
          ),
        ),
      ),
    );
    const rows = records.map(({ fields, usage }, n) => requestRow(now + n, { ...fields, requestId: `r${n}` }, usage));
    await addRequests(logged.store, ...rows);
    const path = "/api/requests?without_usage=true";
    const { json } = await logged.send("GET", path, { as: await logged.login() });
    const expected = records.flatMap(({ fields, usage }, n) => {
      const isWhole =
        fields.method === "POST" && fields.path === "/v1/chat/completions" && fields.outcome === "completed";
      const isEmpty = usage?.inputTokens === 0 && usage.outputTokens === 0;
      return isWhole && isEmpty && (fields.status === 200 || fields.status === 204) ? [`r${n}`] : [];
    });
    expect(expected).toHaveLength(2);
    expect(idsOf(json)).toBe(expected.toReversed().join(" "));
    await logged.stop();
  });

  test("pages follow one another by cursor", async () => {
    expect(await pagesOf("")).toEqual(["c", "b", "a", "d", "e", ""]);
  });

  const cursorError = "cursor must be one that this endpoint returned";
  test.each([
    ["key_id=0", "key_id must be an integer from 1 to 9007199254740991"],
    ["key_id=1e3", "key_id must be an integer from 1 to 9007199254740991"],
    ["limit=201", "limit must be an integer from 1 to 200"],
    ["limit=0", "limit must be an integer from 1 to 200"],
    ["min_duration_ms=-1", "min_duration_ms must be an integer from 0 to 2000000000"],
    ["status=6xx", "status must be a status such as 404, or a class such as 5xx"],
    [
      "outcome=lost",
      "outcome must be one of completed, client_left, shutdown, upstream_failed, timed_out, refused, limited, revoked, ended_by_admin",
    ],
    ["failed=yes", "failed must be true, or left out"],
    ["without_usage=yes", "without_usage must be true, or left out"],
    ["model=", "model must have from 1 to 512 characters"],
    [`path=${"x".repeat(513)}`, "path must have from 1 to 512 characters"],
    ["since=yesterday", "since must be a time such as 2026-05-01T12:00:00Z"],
    ["since=2026-02-30T00:00:00Z", "since must be a time such as 2026-05-01T12:00:00Z"],
    ["until=2026-13-41T12:00:00Z", "until must be a time such as 2026-05-01T12:00:00Z"],
    ["cursor=1;drop", cursorError],
    ["cursor=", cursorError],
    ["cursor=zzzzzzzzzzz.zzzzzzzzzzz", cursorError],
  ])("the query %s gets 400", async (query, error) => {
    const response = await get(`/api/requests?${query}`);
    expect([response.status, response.json]).toEqual([400, { error }]);
  });

  test("a cursor beside the log's ends finds what is there", async () => {
    expect(idsOf((await get("/api/requests?cursor=0.0")).json)).toBe("");
    expect(idsOf((await get("/api/requests?cursor=0.zzzzzzzzz")).json)).toBe("c b a d e");
  });

  test("the tail lists what has a higher id, in pages too, and says where the log ends for each filter", async () => {
    const ended = (requestId: string, modelSent: string) => requestRow(now, { requestId, modelSent });
    const { json: before } = await get("/api/requests?model=tail");
    const rows = [ended("t1", "tail"), ended("o1", "other"), ended("t2", "tail"), ended("t3", "tail")];
    await addRequests(admin.store, ...rows, ended("o2", "other"));
    const tail = async (query: string) => {
      const { json } = await get(`/api/requests?after=${before.last_id}${query}`);
      return { json, ids: idsOf(json), isLast: !json.more, grown: json.last_id - before.last_id };
    };
    expect(await tail("")).toMatchObject({ ids: "o2 t3 t2 o1 t1", isLast: true, grown: 5 });
    expect(await tail("&model=tail")).toMatchObject({ ids: "t3 t2 t1", isLast: true, grown: 5 });
    expect(await tail("&model=tail&since=2000-01-01T00:00:00Z")).toMatchObject({ ids: "t3 t2 t1", isLast: true });
    expect(await tail("&model=none")).toMatchObject({ ids: "", isLast: true, grown: 5 });
    const latest = await tail("&model=tail&limit=2");
    expect(latest).toMatchObject({ ids: "t3 t2", isLast: false });
    expect(await tail(`&model=tail&limit=2&cursor=${latest.json.next_cursor}`)).toMatchObject({
      ids: "t1",
      isLast: true,
    });
    const { json: rest } = await get(`/api/requests?after=${latest.json.last_id}`);
    expect(rest).toMatchObject({ requests: [], next_cursor: null, more: false, last_id: latest.json.last_id });
  });

  test("an API without a request log lists none", async () => {
    const other = await startAdmin({ engine, retention: { ...defaultRetention, requestLog: { days: 0, rows: 1000 } } });
    const visitor = await other.login();
    const { json } = await other.send("GET", "/api/requests", { as: visitor });
    expect(json).toMatchObject({ requests: [], last_id: 0, log: { days: 0 } });
    await other.stop();
  });
});
