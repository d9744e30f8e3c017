import { afterAll, describe, expect, test } from "bun:test";
import { zstdCompressSync } from "node:zlib";
import { logIn } from "../support/admin-client.ts";
import { catalogWith, replaceableCatalog } from "../support/catalog.ts";
import { clientOf } from "../support/client.ts";
import { type EngineName, sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { startProgram } from "../support/program.ts";
import { connectRaw } from "../support/raw-client.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startStoringBackend } from "../support/storing-backend.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

type Counts = [requests: number, inputTokens: number, outputTokens: number];

const engines: EngineName[] = ["SQLite", ...(whyNoPostgres === undefined ? ["PostgreSQL" as const] : [])];
const folders = ["responses", "files", "batches", "messages/batches"];

/** What the holder of a key does. */
function holderOf(url: string, key: string) {
  const client = clientOf(`${url}/v1/`, key);
  const send = (method: string, path: string, body?: object | string, headers = {}) =>
    client.send(path, body, { method, headers: { "x-tollgate-debug": "1", ...headers } });
  return {
    send,
    async statusOf(...request: Parameters<typeof send>): Promise<number> {
      const response = await send(...request);
      await response.text();
      return response.status;
    },
    /** @returns the status, and the backend that responded */
    async placeOf(...request: Parameters<typeof send>): Promise<[number, string | null]> {
      const { status, headers } = await send(...request);
      return [status, headers.get("x-tollgate-backend")];
    },
    async make(folder: string, body: object = {}): Promise<string> {
      return ((await (await send("POST", folder, { model: "two", ...body })).json()) as { id: string }).id;
    },
  };
}

describe.each(engines)("on %s", (engine) => {
  const [first, second] = [startStoringBackend("first"), startStoringBackend("second")];
  const all = [first, second].map(({ url }, at) => ({ name: at === 0 ? "first" : "second", url }));
  const models = all.map(({ name }, at) => ({ name: at === 0 ? "one" : "two", backends: [name] }));
  const catalog = replaceableCatalog(catalogWith(all, models));
  const gate = shared(() => startTollgate({ METRICS_TOKEN: "scrape" }, { catalog, engine }));
  afterAll(async () => {
    for (const backend of [first, second]) await backend[Symbol.asyncDispose]();
  });

  let names = 0;
  async function openKey(fields: object = {}) {
    names += 1;
    const { id, key } = await gate.admin.createKey(`key ${names}`, fields);
    return {
      id,
      key,
      ...holderOf(gate.url, key),
      async counts(): Promise<Counts> {
        const row = (await gate.admin.listKeys()).find((one) => one.id === id);
        return [row?.total_request_count ?? 0, row?.total_input_tokens ?? 0, row?.total_output_tokens ?? 0];
      },
    };
  }
  const nextId = (): string => `resp_chosen_${++names}`;
  const seen = (): number => first.seen.length + second.seen.length;

  test.each(folders)(
    "what a key has under /v1/%s does not exist for another, however its path is written",
    async (folder) => {
      const [a, b] = [await openKey(), await openKey()];
      const id = await a.make(folder);
      const before = seen();
      const asked: [method: string, path: string][] = [
        ["GET", `${folder}/${id}`],
        ["GET", `${folder}/${id}?stream=true`],
        ["GET", `${folder}/${id}/`],
        ["GET", `/${folder}//${id}`],
        ["GET", `${folder.replace("e", "%65")}/${id.replace("i", "%69")}`],
        ["GET", `${folder}%2F${id}`],
        ["GET", `${folder}%u002F${id}`],
        ["GET", `${folder}/%2E%2F${id}`],
        ["GET", `${folder}/${id}%2F.`],
        ["GET", `${folder}/${id}/content`],
        ["GET", `${folder}/${id}%2Finput_items`],
        ["POST", `${folder}/${id}/cancel`],
        ["POST", `${folder}/${id}/other`],
        ["PATCH", `${folder}/${id}`],
        ["HEAD", `${folder}/${id}`],
        ["DELETE", `${folder}/${id}`],
      ];
      for (const [method, path] of asked) {
        const response = await b.send(method, path, method === "POST" ? {} : undefined);
        const code =
          method === "HEAD" ? "not_found" : ((await response.json()) as { error: { code: string } }).error.code;
        expect([method, path, response.status, code]).toEqual([method, path, 404, "not_found"]);
      }
      // The target goes out as it is, while `fetch` drops a fragment.
      for (const suffix of ["#", "#x", "/#?stream=true"]) {
        const client = await connectRaw(gate.url);
        client.request("GET", `/v1/${folder}/${id}${suffix}`, { "x-api-key": b.key });
        expect([suffix, (await client.head()).status]).toEqual([suffix, 404]);
        client.close();
      }
      expect([seen(), (await b.counts())[0]]).toEqual([before, 0]);
      expect(await a.placeOf("GET", `${folder}/${id}`)).toEqual([200, "second"]);
      expect(await a.placeOf("POST", `${folder}/${id}/cancel`, {})).toEqual([200, "second"]);
      expect(await a.placeOf("DELETE", `${folder}/${id}`)).toEqual([200, "second"]);
    },
  );

  const long = "x".repeat(300_000);
  type Body = (id: string) => object | string;
  test.each<[path: string, folder: string, body: Body]>([
    ["responses", "responses", (id) => ({ previous_response_id: id })],
    ["responses", "responses", (id) => `{"model":"one","previous_response\\u005fid":"${id}"}`],
    ["responses", "responses", (id) => `{"previous_response_id":"resp_0","previous_response_id":"${id}"}`],
    ["responses", "responses", (id) => `{"previous_response_id":"${id}","previous_response_id":"resp_0"}`],
    ["responses", "responses", (id) => `{"previous_response_id" :\n"${id.replace("r", "\\u0072")}"}`],
    // Go reads these too, and LiteLLM the last.
    ["responses", "responses", (id) => ({ Previous_Response_ID: id })],
    ["responses", "responses", (id) => `{"previou\u017f_response_id":"${id}"}`],
    ["responses", "responses", (id) => ({ extra_body: { previous_response_id: id } })],
    ["responses", "responses", (id) => ({ input: long, previous_response_id: id })],
    ["responses/compact", "responses", (id) => ({ previous_response_id: id })],
    ["responses", "files", (id) => ({ input: [{ content: [{ type: "input_file", file_id: id }] }] })],
    ["responses", "files", (id) => ({ tools: [{ container: { file_ids: [1, "unknown", id] } }] })],
    ["responses", "files", (id) => ({ input: [[[[[[[[[{ a: long, file_id: id }]]]]]]]]] })],
    ["batches", "files", (id) => ({ input_file_id: id })],
    ["vector_stores", "files", (id) => ({ file_ids: ["unknown", id, 1] })],
    ["vector_stores/unknown/file_batches", "files", (id) => ({ files: [{ file_id: "unknown" }, { file_id: id }] })],
    ["fine_tuning/jobs", "files", (id) => ({ training_file: id })],
    ["fine_tuning/jobs", "files", (id) => ({ validation_file: id })],
    ["threads/unknown/messages", "files", (id) => ({ content: [{ image_file: { file_id: id } }] })],
    ["anything/new", "files", (id) => ({ deep: { file_id: id } })],
  ])(
    "a body of /v1/%s names nothing of another key's %s, and goes where what it names is",
    async (path, folder, bodyOf) => {
      const [a, b] = [await openKey(), await openKey()];
      const id = await a.make(folder);
      const body = bodyOf(id);
      const text = typeof body === "string" ? body : JSON.stringify(body);
      expect(await a.placeOf("POST", path, body)).toEqual([200, "second"]);
      // It came unchanged.
      expect(second.bodies.at(-1)).toBe(text);
      const before = seen();
      expect(await b.statusOf("POST", path, body)).toBe(404);
      expect(await b.statusOf("POST", path, text, { "content-type": "text/plain" })).toBe(404);
      const zstd = new Uint8Array(zstdCompressSync(text));
      expect(await b.statusOf("POST", path, zstd, { "content-encoding": "zstd" })).toBe(404);
      expect([seen(), (await b.counts())[0]]).toEqual([before, 0]);
      expect(await b.statusOf("POST", path, bodyOf("unknown"))).toBe(200);
    },
  );

  test.each<[string, Body]>([
    ["chat/completions", (id) => ({ model: "one", file_id: id, messages: [{ content: [{ file: { file_id: id } }] }] })],
    ["completions", (id) => ({ model: "one", previous_response_id: id })],
    ["embeddings", (id) => ({ model: "one", input: "a", file_id: id })],
    ["messages", (id) => ({ model: "one", messages: [{ content: [{ source: { file_id: id } }] }] })],
    ["messages/batches", (id) => ({ requests: [{ params: { file_id: id } }] })],
    ["responses", (id) => ({ input: `"file_id":"${id}"`, user: id, previous_response_id: null })],
    ["responses", (id) => ({ file_id: { deeper: id }, input: [{ file_id: "unknown" }, id] })],
  ])("a body of /v1/%s that %p makes is not looked up", async (path, bodyOf) => {
    const id = await (await openKey()).make("files");
    expect(await (await openKey()).statusOf("POST", path, bodyOf(id))).toBe(200);
  });

  test("a body that cannot be decoded, where it could name what is stored, is refused, and else passes as it came", async () => {
    const a = await openKey();
    const coded = { "content-encoding": "zstd" };
    for (const path of ["responses", "batches"]) {
      expect(await a.statusOf("POST", path, "no zstd", coded)).toBe(415);
      expect(await a.statusOf("POST", path, "unknown", { "content-encoding": "x" })).toBe(415);
    }
    const passing: [path: string, headers: Record<string, string>, body: string][] = [
      ["completions", coded, "no zstd"],
      ["responses/compact", { "content-type": "text/plain" }, "no JSON"],
      ["batches", {}, '{"no": JSON'],
      ["anything", { "content-type": "multipart/form-data; boundary=x" }, '{"file_id":"a"}'],
    ];
    for (const [path, headers, body] of passing) {
      expect([path, await a.statusOf("POST", path, body, headers)]).toEqual([path, 200]);
      expect(first.bodies.at(-1)).toBe(body);
    }
  });

  test("a create may not choose an id that another key has", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = await a.make("responses", { request_id: nextId(), input: "of a" });
    const before = seen();
    for (const body of [{ request_id: id }, { request_id: id, store: false }, { extra_body: { request_id: id } }]) {
      const response = await b.send("POST", "responses", { model: "one", ...body });
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { error: { code: "member_not_allowed", param: "request_id", type: "invalid_request_error" } },
      ]);
    }
    expect([seen(), await b.counts()]).toEqual([before, [0, 0, 0]]);
    expect(await b.statusOf("POST", "batches", { request_id: id })).toBe(200);
    expect(await a.placeOf("POST", "responses", { model: "one", request_id: id })).toEqual([200, "first"]);
    expect(await a.placeOf("GET", `responses/${id}`)).toEqual([200, "first"]);
  });

  test("an id with slashes is known as far as a path shows it", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = await a.make("responses", { request_id: `${nextId()}/more` });
    expect(await b.statusOf("POST", "responses", { model: "two", previous_response_id: id })).toBe(404);
    expect(await b.statusOf("GET", `responses/${encodeURIComponent(id)}`)).toBe(404);
    expect(await a.statusOf("POST", "responses", { model: "two", previous_response_id: `/${id}` })).toBe(200);
  });

  test("of two keys that choose an id at once, one has it; the create of the other counts", async () => {
    const keys = [await openKey(), await openKey()];
    const id = nextId();
    const release = second.holdCreates(2);
    const made = keys.map((key) => key.make("responses", { request_id: id }));
    await release;
    expect(await Promise.all(made)).toEqual([id, id]);
    const statuses = await Promise.all(keys.map((key) => key.statusOf("GET", `responses/${id}`)));
    expect(new Set(statuses)).toEqual(new Set([200, 404]));
    for (const key of keys) expect((await key.counts()).slice(1)).toEqual([20, 3]);
  });

  test("a streamed response is its key's before the client learns its id", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    const response = await a.send("POST", "responses", { model: "two", request_id: id, stream: true });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    expect(await b.statusOf("GET", `responses/${id}`)).toBe(404);
    second.endStreams();
    while (!(await reader.read()).done);
    expect(await b.statusOf("GET", `responses/${id}`)).toBe(404);
    expect(await a.placeOf("GET", `responses/${id}`)).toEqual([200, "second"]);
    expect((await a.counts())[2]).toBe(3);
  });

  test("the files that a batch of its own names are a key's, and no others", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const batch = await a.make("batches");
    expect(await a.statusOf("GET", `batches/${batch}`)).toBe(200);
    for (const file of [`file-output-of-${batch}`, `file-error-of-${batch}`]) {
      expect(await a.placeOf("GET", `files/${file}/content`)).toEqual([200, "second"]);
      expect(await b.statusOf("GET", `files/${file}/content`)).toBe(404);
    }
    first.put("batch_elsewhere");
    expect(await b.statusOf("GET", "batches/batch_elsewhere")).toBe(200);
    expect(await a.statusOf("GET", "files/file-output-of-batch_elsewhere")).toBe(200);
    expect(await b.statusOf("GET", "files/file-output-of-batch_elsewhere")).toBe(200);
  });

  test("what nobody made here is forwarded to the first backend, and counts once for each reader", async () => {
    const [a, b] = [await openKey(), await openKey()];
    first.put("resp_elsewhere", 5);
    for (const key of [a, a, b, b])
      expect(await key.placeOf("GET", "responses/resp_elsewhere")).toEqual([200, "first"]);
    for (const key of [a, b]) expect(await key.counts()).toEqual([2, 20, 5]);
    expect(await a.statusOf("GET", "responses/resp_nowhere")).toBe(404);
    expect(await a.statusOf("GET", `responses/${"x".repeat(600)}`)).toBe(404);
  });

  test("what a backend does not store is nobody's, and other folders are open", async () => {
    const [a, b] = [await openKey(), await openKey()];
    for (const folder of ["conversations", "vector_stores", "containers", "threads", "assistants", "uploads"]) {
      const id = await a.make(folder, { model: "one" });
      expect([folder, await b.statusOf("GET", `${folder}/${id}`)]).toEqual([folder, 200]);
    }
    const id = await a.make("responses", { request_id: nextId(), store: false });
    expect(await b.statusOf("POST", "responses", { model: "two", request_id: id })).toBe(200);
    const body = new Uint8Array(zstdCompressSync(JSON.stringify({ store: false })));
    const coded = { "content-encoding": "zstd" };
    const made = (await (await a.send("POST", "responses", body, coded)).json()) as { id: string };
    expect(await b.statusOf("GET", `responses/${made.id}`)).toBe(200);
    const utf16 = new Uint8Array(zstdCompressSync(Buffer.from(`{"previous_response_id":"${id}"}`, "utf16le")));
    expect(await b.statusOf("POST", "responses", utf16, coded)).toBe(400);
  });

  test("nobody blocks a path of the API by choosing its name as an id", async () => {
    const [a, b] = [await openKey(), await openKey()];
    await a.make("responses", { request_id: "compact" });
    expect(await b.statusOf("POST", "responses/compact", { model: "one" })).toBe(200);
  });

  test("what is at a backend that is no longer configured is not found, and the error says why", async () => {
    const a = await openKey();
    const id = await a.make("responses");
    catalog.replace(catalogWith([...all.slice(0, 1), { name: "third", url: first.url }], models.slice(0, 1)));
    const response = await a.send("GET", `responses/${id}`);
    const message = "What this id names is at the backend second, which is no longer configured.";
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code: "not_found", message } }]);
    catalog.replace(catalogWith(all, models));
    expect(await a.statusOf("GET", `responses/${id}`)).toBe(200);
  });

  test("what a deleted key has stored stays hidden from others", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = await a.make("files");
    await gate.admin.deleteKey(a.id);
    expect(await b.statusOf("GET", `files/${id}`)).toBe(404);
  });

  test("limits of requests refuse before anything is looked up, and a body may name 1000 ids", async () => {
    const limited = await openKey({ requests_per_minute: 1 });
    const id = await (await openKey()).make("files");
    expect(await limited.statusOf("GET", `files/${id}`)).toBe(404);
    await limited.make("files");
    for (const [method, path, body] of [
      ["GET", `files/${id}`],
      ["POST", "vector_stores", { file_ids: [id] }],
    ] as const) {
      expect(await limited.statusOf(method, path, body)).toBe(429);
    }
    const a = await openKey();
    const ids = (count: number) => ({ file_ids: Array.from({ length: count }, (_, n) => `file-${n}`) });
    expect(await a.statusOf("POST", "vector_stores", ids(1000))).toBe(200);
    const response = await a.send("POST", "vector_stores", ids(1001));
    expect([response.status, await response.json()]).toMatchObject([400, { error: { code: "invalid_request" } }]);
  });

  type Key = Awaited<ReturnType<typeof openKey>>;
  const readInEveryWay = async (key: Key, id: string): Promise<void> => {
    for (const query of ["", "?stream=true", "?gzip"]) await (await key.send("GET", `responses/${id}${query}`)).text();
    await (await key.send("POST", `responses/${id}/cancel`, {})).text();
  };
  test.each<[string, (key: Key) => Promise<unknown>, Counts]>([
    ["a create, not when it is read", async (key) => readInEveryWay(key, await key.make("responses")), [5, 20, 3]],
    [
      "a long create, not when it is read",
      async (key) => readInEveryWay(key, await key.make("responses", { input: "x".repeat(100_000) })),
      [5, 20, 3],
    ],
    [
      "a create too long to be read whole, not when it is read",
      async (key) => readInEveryWay(key, await key.make("responses", { input: "x".repeat(2_000_000) })),
      [5, 20, 3],
    ],
    [
      "a streamed create, not when it is read",
      async (key) => {
        const id = nextId();
        const response = await key.send("POST", "responses", { model: "two", request_id: id, stream: true });
        second.endStreams();
        await response.text();
        await readInEveryWay(key, id);
      },
      [5, 20, 3],
    ],
    [
      "a background response, with the first read that shows them",
      async (key) => {
        const id = await key.make("responses", { background: true });
        await (await key.send("GET", `responses/${id}`)).text();
        second.complete(id);
        await readInEveryWay(key, id);
      },
      [6, 20, 3],
    ],
    [
      "a background response that is only cancelled",
      async (key) => {
        const id = await key.make("responses", { background: true });
        second.complete(id);
        for (let n = 0; n < 2; n++) await (await key.send("POST", `responses/${id}/cancel`, {})).text();
      },
      [3, 20, 3],
    ],
    [
      "a background response that many read at one moment, once",
      async (key) => {
        const id = await key.make("responses", { background: true });
        second.complete(id);
        const read = async () => (await key.send("GET", `responses/${id}`)).text();
        await Promise.all(Array.from({ length: 20 }, read));
      },
      [21, 20, 3],
    ],
    [
      "each create under one id",
      async (key) => {
        const id = nextId();
        for (let n = 0; n < 2; n++) await key.make("responses", { request_id: id });
        await key.make("responses", { request_id: id, background: true });
        second.complete(id);
        await readInEveryWay(key, id);
      },
      [7, 60, 9],
    ],
    ["a create without an id", async (key) => key.make("responses", { nameless: true }), [1, 20, 3]],
    [
      "each create and read of an id too long to be known",
      async (key) => {
        const id = `resp_${"x".repeat(600)}`;
        await key.make("responses", { model: "one", request_id: id });
        for (let n = 0; n < 2; n++) await (await key.send("GET", `responses/${id}`)).text();
      },
      [3, 60, 9],
    ],
    [
      "no deletion, file or batch",
      async (key) => {
        const made = [await key.make("files"), await key.make("batches")];
        await (await key.send("GET", `files/${made[0]}/content`)).text();
        await (await key.send("GET", `batches/${made[1]}`)).text();
        await (await key.send("DELETE", `files/${made[0]}`)).text();
      },
      [5, 0, 0],
    ],
  ])("tokens count with %s", async (_, act, counts) => {
    const key = await openKey();
    await act(key);
    expect(await key.counts()).toEqual(counts);
  });

  test("log and metrics show the tokens that were counted", async () => {
    const tokens = async (): Promise<number> => {
      const response = await fetch(`${gate.adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } });
      return Number(/^tollgate_tokens_total{direction="input"} (\d+)$/m.exec(await response.text())?.[1]);
    };
    const a = await openKey();
    const before = await tokens();
    const id = await a.make("responses", { background: true });
    second.complete(id);
    await readInEveryWay(a, id);
    expect((await tokens()) - before).toBe(20);
    const ended = gate.log.filter(({ message, path }) => message === "Request ended" && path === `/v1/responses/${id}`);
    expect(ended.map(({ inputTokens }) => inputTokens)).toEqual([20, 0, 0]);
  });

  test("creates with one id use up a limit of tokens", async () => {
    const a = await openKey({ tokens_per_day: 60 });
    const body = { model: "two", request_id: nextId(), max_output_tokens: 3 };
    for (const status of [200, 200, 429]) expect(await a.statusOf("POST", "responses", body)).toBe(status);
    expect(await a.counts()).toEqual([2, 40, 6]);
  });
});

test("with one backend, what a key has stored is its own too, whatever the backend sends as", async () => {
  await using backend = startStoringBackend("only");
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
  const other = holderOf(gate.url, (await gate.admin.createKey("other")).key);
  const own = holderOf(gate.url, gate.key);
  for (const body of [{}, { as: "gzip" }, { as: "text" }, { as: "gzip", stream: true }]) {
    const [, id] = /"id":"([^"]+)"/.exec(await (await own.send("POST", "responses", body)).text()) ?? [];
    expect([body, await other.statusOf("GET", `responses/${id}`)]).toEqual([body, 404]);
    expect([body, await own.statusOf("GET", `responses/${id}`)]).toEqual([body, 200]);
  }
});

test.each(engines)(
  "what a client saw the end of is its key's own after kill -9, in every process and instance, on %s",
  async (engine) => {
    using folder = createTempFolder();
    await using backend = startStoringBackend("only");
    const environment = {
      PROXY_UPSTREAM_URL: backend.url,
      ADMIN_PASSWORD: "password",
      SECRET_KEY: "0123456789abcdef",
      LOG_LEVEL: "error",
      DATA_DIR: folder.path,
      ...(engine === "SQLite" ? { PROCESSES: "2" } : { DATABASE_URL: await (await sharedPostgres()).createDatabase() }),
    };
    const started = await startProgram(environment);
    const admin = await logIn(started.adminUrl, "admin", "password");
    const [a, b] = [(await admin.createKey("a")).key, (await admin.createKey("b")).key];
    const id = await holderOf(started.url, a).make("responses", { background: true });
    backend.complete(id);
    expect(await holderOf(started.url, b).statusOf("GET", `responses/${id}`)).toBe(404);
    expect(await holderOf(started.url, a).statusOf("GET", `responses/${id}`)).toBe(200);
    await started.stop("SIGKILL");

    const again = await startProgram(environment);
    const other = engine === "SQLite" ? again : await startProgram(environment);
    for (const { url } of [again, other, again, other]) {
      expect(await holderOf(url, b).statusOf("GET", `responses/${id}`)).toBe(404);
      expect(await holderOf(url, a).statusOf("GET", `responses/${id}`)).toBe(200);
    }
    const rows = await (await logIn(other.adminUrl, "admin", "password")).listKeys();
    expect(rows.map((row) => [row.total_request_count, row.total_output_tokens])).toEqual([
      [6, 3],
      [0, 0],
    ]);
    await Promise.all(new Set([again.stop(), other === again ? 0 : other.stop()]));
  },
);
