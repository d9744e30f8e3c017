import { describe, expect, test } from "bun:test";
import { constants, gzipSync } from "node:zlib";
import { startSimulator } from "../support/simulator/simulator.ts";
import type { ListedKey } from "../support/admin-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { valueOf } from "../telemetry/open-metrics.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

const messages = [{ role: "user", content: "Count me" }];

type Counts = [requests: number, inputTokens: number, outputTokens: number];

const countsOf = (key: ListedKey): Counts => [key.total_request_count, key.total_input_tokens, key.total_output_tokens];

onEachEngine(({ engine }) => {
  const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_HAN_GUARD: "off" }, { engine }));

  /** What `act` adds to the key's totals, read immediately after it. */
  async function countsAddedBy(act: () => Promise<unknown>, of: Tollgate = gate): Promise<Counts> {
    const before = countsOf(await of.readKey());
    await act();
    const after = countsOf(await of.readKey());
    return after.map((count, index) => count - (before[index] ?? 0)) as Counts;
  }

  const usage = "usage=1234,56";

  const send = (path: string, body: object, script = usage, of: Tollgate = gate): Promise<Response> =>
    of.send(path, { model: "m", ...body }, { script });

  /** Each kind of request whose response reports usage. */
  const reportingRequests: [string, string, object][] = [
    ["a chat completion", "/v1/chat/completions", { messages, max_tokens: 8 }],
    [
      "a streamed chat completion",
      "/v1/chat/completions",
      { messages, max_tokens: 8, stream: true, stream_options: { include_usage: true } },
    ],
    ["a completion", "/v1/completions", { prompt: "Count me", max_tokens: 8 }],
    [
      "a streamed completion",
      "/v1/completions",
      { prompt: "Count me", max_tokens: 8, stream: true, stream_options: { include_usage: true } },
    ],
    ["a response", "/v1/responses", { input: "Count me", max_output_tokens: 8 }],
    ["a streamed response", "/v1/responses", { input: "Count me", max_output_tokens: 8, stream: true }],
    ["a message", "/v1/messages", { messages, max_tokens: 8 }],
    ["a streamed message", "/v1/messages", { messages, max_tokens: 8, stream: true }],
  ];

  describe("a response is counted by the time the client sees its end:", () => {
    // How a response comes is one matter, and where it is counted another.
    const ways = ["", ...(engine === "SQLite" ? ["; gzip", "; split=17"] : [])];
    test.each(reportingRequests.flatMap(([what, path, body]) => ways.map((way) => [what, way, path, body] as const)))(
      "%s%s",
      async (_, way, path, body) => {
        expect(await countsAddedBy(async () => (await send(path, body, usage + way)).text())).toEqual([1, 1234, 56]);
      },
    );

    test("an embedding has no output tokens", async () => {
      const [requests, input, output] = await countsAddedBy(async () =>
        (await send("/v1/embeddings", { input: "Count me" }, "usage=77,0")).text(),
      );
      expect([requests, input, output]).toEqual([1, 77, 0]);
    });

    const chunk = '{"choices":[],"usage":{"prompt_tokens":1234,"completion_tokens":56}}';
    const flushed = gzipSync(`data: ${chunk}\n\n`, { finishFlush: constants.Z_SYNC_FLUSH });
    test.each<[string, Record<string, string>, string | Uint8Array<ArrayBuffer>]>([
      ["a gzip that is flushed but not finished", { "content-encoding": "gzip" }, new Uint8Array(flushed)],
      ["a body in gzip twice", { "content-encoding": "gzip, gzip" }, new Uint8Array(gzipSync(flushed))],
      ["JSON under the type of an event stream", {}, chunk],
      ["usage under x_groq", {}, `data: {"x_groq":${chunk},"choices":[]}\n\n`],
      ["lines of JSON", { "content-type": "application/x-ndjson" }, `{"a":1}\n${chunk}\n`],
    ])("%s", async (_, headers, body) => {
      using server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => new Response(body, { headers: { "content-type": "text/event-stream", ...headers } }),
      });
      await using other = await startTollgate({ PROXY_UPSTREAM_URL: server.url.href });
      const act = async (): Promise<unknown> =>
        (
          await other.send("/v1/chat/completions", { model: "m", stream: true, messages }, { decompress: false })
        ).bytes();
      expect(await countsAddedBy(act, other)).toEqual([1, 1234, 56]);
    });

    test("a response without usage counts as a request", async () => {
      const streamed = { messages, max_tokens: 8, stream: true };
      for (const script of ["no-usage", "usage-null"]) {
        expect(await countsAddedBy(async () => (await send("/v1/chat/completions", streamed, script)).text())).toEqual([
          1, 0, 0,
        ]);
      }
    });

    test("any other 2xx counts as a request", async () => {
      const get = (script: string) => gate.send("/v1/anything", undefined, { script });
      expect(await countsAddedBy(async () => (await get("")).text())).toEqual([1, 0, 0]);
      expect(await countsAddedBy(() => get("204"))).toEqual([1, 0, 0]);
      expect(await countsAddedBy(() => gate.send("/v1/models", undefined, { method: "HEAD" }))).toEqual([1, 0, 0]);
    });
  });

  describe("nothing is counted of", () => {
    test.each([
      "status=400",
      "status=401",
      "status=404",
      "status=429",
      "status=500",
      "redirect",
      "304",
      "reset-before-head",
    ])("a response with %s", async (script) => {
      const act = async (): Promise<unknown> =>
        (await gate.send("/v1/anything", undefined, { script, redirect: "manual" })).text();
      expect(await countsAddedBy(act)).toEqual([0, 0, 0]);
    });

    test("a stream that the backend breaks after it reported usage", async () => {
      const body = { messages, max_tokens: 8, stream: true };
      const act = async (): Promise<unknown> =>
        (await send("/v1/messages", body, `${usage}; reset@5`)).text().catch(() => "");
      expect(await countsAddedBy(act)).toEqual([0, 0, 0]);
    });
  });

  describe("a count", () => {
    test("sets last_used_at, at most once a minute", async () => {
      let now = Date.parse("2026-03-01T12:00:00+09:00");
      await using timed = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { clock: () => now, engine });
      const use = async (): Promise<string | null> => {
        await (await send("/v1/chat/completions", { messages }, usage, timed)).text();
        return (await timed.readKey()).last_used_at;
      };
      expect((await timed.readKey()).last_used_at).toBeNull();
      expect(await use()).toBe("2026-03-01T12:00:00.000+09:00");
      now += 59_000;
      expect(await use()).toBe("2026-03-01T12:00:00.000+09:00");
      now += 1_000;
      expect(await use()).toBe("2026-03-01T12:01:00.000+09:00");
    });

    test("belongs to the day and minute in Seoul in which the response closed", async () => {
      const midnight = Date.parse("2026-03-02T00:00:00+09:00");
      let now = midnight - 1;
      await using timed = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { clock: () => now, engine });
      await (await send("/v1/chat/completions", { messages }, "usage=1,2", timed)).text();
      const body = { model: "m", stream: true, max_tokens: 4, messages };
      const client = await timed.sendRaw("/v1/messages", body, { script: "usage=10,20; gap=2s@2" });
      await client.nextEvent();
      now = midnight;
      expect(await client.ended()).toBe("complete");
      client.close();

      const daily = await timed.admin.expectOk<object[]>("GET", "/api/usage/daily");
      expect(daily).toMatchObject([
        { date: "2026-03-02", request_count: 1, input_tokens: 10, output_tokens: 20 },
        { date: "2026-03-01", request_count: 1, input_tokens: 1, output_tokens: 2 },
      ]);
      const history = await timed.admin.expectOk<{ points: object[] }>(
        "GET",
        "/api/usage/history?days=1&bucket_minutes=1",
      );
      expect(history.points).toMatchObject([
        { bucket_start: "2026-03-01T23:59:00.000+09:00", request_count: 1, output_tokens: 2 },
        { bucket_start: "2026-03-02T00:00:00.000+09:00", request_count: 1, output_tokens: 20 },
      ]);
    });

    test("of a client that left contains the usage seen so far", async () => {
      const before = countsOf(await gate.readKey());
      const body = { model: "m", stream: true, max_tokens: 9, messages };
      const client = await gate.sendRaw("/v1/messages", body, { script: "usage=500,50; gap=forever@5" });
      expect(await client.nextEvent()).toContain("message_start");
      await client.bodyContaining("content_block_delta");
      client.reset();
      await pollUntil(async () => countsOf(await gate.readKey())[0] > before[0]);
      expect(countsOf(await gate.readKey())[1] - before[1]).toBe(500);
    });
  });

  interface Row {
    key_id: number;
    request_count: number;
    input_tokens: number;
    output_tokens: number;
  }
  /** The counts of one key in the rows of a report. */
  const sumOf = (rows: Row[], id: number): Counts =>
    rows
      .filter((row) => row.key_id === id)
      .reduce<Counts>(
        (sum, row) => [sum[0] + row.request_count, sum[1] + row.input_tokens, sum[2] + row.output_tokens],
        [0, 0, 0],
      );

  describe("after mixed traffic of several keys, with clients leaving and backends breaking,", () => {
    test("clients, simulator, counters and metrics agree key by key, by day and by minute", async () => {
      const environment = { PROXY_UPSTREAM_URL: backend.url, METRICS_PER_KEY: "on" };
      await using busy = await startTollgate(environment, { engine });
      const keys = await Promise.all(["a", "b", "c"].map((name) => busy.admin.createKey(name)));
      const seen = new Map(keys.map(({ id }) => [id, [0, 0, 0] as Counts]));
      const sendNth = async (index: number): Promise<void> => {
        const key = keys[index % keys.length];
        if (key === undefined) return;
        const [, path, body] = reportingRequests[(index * 7) % reportingRequests.length] ?? [
          "",
          "/v1/chat/completions",
          { messages },
        ];
        const [input, output] = [100 + index, index];
        const breaks = index % 5 === 0;
        const script = `usage=${input},${output}; split=${40 + index}${breaks ? "; reset-before-head" : ""}`;
        const response = await busy.send(path, { model: "m", ...body }, { key: key.key, script });
        await response.text();
        const sums = seen.get(key.id);
        if (breaks || sums === undefined) return;
        sums[0] += 1;
        sums[1] += input;
        sums[2] += output;
      };
      for (let round = 0; round < 10; round++) {
        await Promise.all(Array.from({ length: 20 }, (_, index) => sendNth(round * 20 + index)));
      }

      const listed = await busy.admin.listKeys();
      const daily = await busy.admin.expectOk<Row[]>("GET", "/api/usage/daily?days=7");
      const { points } = await busy.admin.expectOk<{ points: Row[] }>(
        "GET",
        "/api/usage/history?days=1&bucket_minutes=1",
      );
      const metrics = await (await busy.admin.request("GET", "/metrics")).text();
      for (const { id } of keys) {
        const expected = seen.get(id);
        const label = `key_id="${id}"`;
        expect([
          valueOf(metrics, `tollgate_counted_requests_total{${label}}`),
          valueOf(metrics, `tollgate_counted_tokens_total{${label},direction="input"}`),
          valueOf(metrics, `tollgate_counted_tokens_total{${label},direction="output"}`),
        ]).toEqual([...(expected ?? [])]);
        expect(expected?.[0]).toBeGreaterThan(0);
        const key = listed.find((row) => row.id === id);
        expect(key && countsOf(key)).toEqual(expected);
        expect(sumOf(daily, id)).toEqual(expected ?? [0, 0, 0]);
        expect(sumOf(points, id)).toEqual(expected ?? [0, 0, 0]);
      }
    });
  });
});
