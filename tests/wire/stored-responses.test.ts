import { afterAll, beforeAll, expect, test } from "bun:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import type { ListedKey } from "../support/admin-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

/** A backend that stores responses, batches and files, as OpenAI's does. */
function startBackend() {
  const usage = { input_tokens: 20, output_tokens: 3, total_tokens: 23 };
  let created = 0;
  const responseOf = (id: string, fields: object) => ({ id, object: "response", output: [], usage: null, ...fields });
  const streamOf = (id: string): Response => {
    const event = (type: string, fields: object): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, response: responseOf(id, fields) })}\n\n`;
    const text =
      event("response.created", { status: "in_progress" }) +
      event("response.completed", { status: "completed", usage });
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  };
  const compressed = (body: object): Response =>
    new Response(gzipSync(JSON.stringify(body)), {
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
    });
  const chunk = { object: "chat.completion", usage: { prompt_tokens: 7, completion_tokens: 1 } };
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    routes: {
      "/v1/responses": async (request) => {
        if (request.headers.get("content-encoding") !== null) return Response.json({});
        const { background, stream, nameless, padding = 0 } = (await request.json()) as Record<string, number>;
        const id = `resp_${++created}`;
        if (stream !== undefined) return streamOf(id);
        if (background !== undefined) return Response.json(responseOf(id, { status: "queued" }));
        const text = "x".repeat(padding);
        return Response.json(responseOf(nameless === undefined ? id : "", { status: "completed", usage, text }));
      },
      "/v1/responses/compact": async (request) =>
        Response.json({ came: Buffer.from(await request.bytes()).toString("latin1") }),
      "/v1/responses/:id": ({ method, params: { id }, url }) => {
        if (method === "DELETE") return Response.json({ id, object: "response", deleted: true, usage });
        if (url.includes("stream=true")) return streamOf(id);
        if (url.includes("gzip")) return compressed(responseOf(id, { status: "completed", usage }));
        return Response.json(responseOf(id, { status: "completed", usage }));
      },
      "/v1/responses/:id/cancel": ({ params: { id } }) => Response.json(responseOf(id, { status: "cancelled", usage })),
      "/v1/batches": () => Response.json({ id: "batch_1", object: "batch", usage }),
      "/v1/batches/:id": () => Response.json({ id: "batch_1", object: "batch", usage }),
      "/v1/files": () => Response.json({ id: "file_1", object: "file", usage }),
      "/v1/files/:id/content": () => Response.json({ response: { body: chunk }, usage: chunk.usage }),
      "/v1/chat/completions/:id": () => Response.json(chunk),
    },
  });
}

let backend: ReturnType<typeof startBackend>;
let gate: Tollgate;
beforeAll(async () => {
  backend = startBackend();
  gate = await startTollgate({ PROXY_UPSTREAM_URL: `http://127.0.0.1:${backend.port}`, METRICS_TOKEN: "scrape" });
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await backend.stop(true);
});

type Counts = [requests: number, inputTokens: number, outputTokens: number];

const countsOf = (key: ListedKey): Counts => [key.total_request_count, key.total_input_tokens, key.total_output_tokens];

/** Sends a request and reads its response to the end. */
async function send(method: string, path: string, body?: object): Promise<string> {
  const response = await fetch(gate.url + path, {
    method,
    headers: { "x-api-key": gate.key, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify({ model: "m", ...body }) }),
  });
  expect(response.status).toBe(200);
  return response.text();
}

async function create(body: object): Promise<string> {
  const [, id = ""] = /"id":"(resp_\d+)"/.exec(await send("POST", "/v1/responses", body)) ?? [];
  return id;
}

/** What `act` adds to the key's totals, read right after it. */
async function counted(act: () => Promise<unknown>): Promise<Counts> {
  const before = countsOf(await gate.readKey());
  await act();
  const after = countsOf(await gate.readKey());
  return after.map((count, index) => count - (before[index] ?? 0)) as Counts;
}

/** Retrieves a response in every way. */
async function retrieve(id: string): Promise<void> {
  await send("GET", `/v1/responses/${id}`);
  await send("GET", `/v1/responses/${id}?stream=true`);
  await send("GET", `/v1/responses/${id}?gzip`);
  await send("POST", `/v1/responses/${id}/cancel`);
}

test.each<[string, object]>([
  ["whole", {}],
  ["whole and long", { padding: 100_000 }],
  ["whole and too long to be read whole", { padding: 2_000_000 }],
  ["streamed", { stream: 1 }],
])("the tokens of a response that was %s count when it is created, and not again", async (_, body) => {
  let id = "";
  expect(await counted(async () => (id = await create(body)))).toEqual([1, 20, 3]);
  expect(await counted(() => retrieve(id))).toEqual([4, 0, 0]);
});

test.each<[string, (id: string) => Promise<unknown>]>([
  ["a retrieval", (id) => send("GET", `/v1/responses/${id}`)],
  ["a streamed retrieval", (id) => send("GET", `/v1/responses/${id}?stream=true`)],
  ["a compressed retrieval", (id) => send("GET", `/v1/responses/${id}?gzip`)],
  ["its cancellation", (id) => send("POST", `/v1/responses/${id}/cancel`)],
])("the tokens of a background response count with %s, once", async (_, show) => {
  let id = "";
  expect(await counted(async () => (id = await create({ background: 1 })))).toEqual([1, 0, 0]);
  expect(await counted(() => show(id))).toEqual([1, 20, 3]);
  expect(await counted(() => retrieve(id))).toEqual([4, 0, 0]);
});

test("a response that many retrieve at one moment counts once", async () => {
  const id = await create({ background: 1 });
  const all = (): Promise<unknown> => Promise.all(Array.from({ length: 20 }, () => send("GET", `/v1/responses/${id}`)));
  expect(await counted(all)).toEqual([20, 20, 3]);
});

test("a response without an id counts when it is created, and not when it is retrieved", async () => {
  expect(await counted(() => send("POST", "/v1/responses", { nameless: 1 }))).toEqual([1, 20, 3]);
  expect(await counted(() => send("POST", "/v1/responses", { nameless: 1 }))).toEqual([1, 20, 3]);
});

test.each([
  ["DELETE", "/v1/responses/resp_new"],
  ["POST", "/v1/batches"],
  ["GET", "/v1/batches/batch_1"],
  ["POST", "/v1/files"],
  ["GET", "/v1/files/file_1/content"],
  ["GET", "/v1/chat/completions/chat_1"],
])("%s %s counts the request, and not the tokens that it reports", async (method, path) => {
  const body = method === "POST" ? {} : undefined;
  expect(await counted(() => send(method, path, body))).toEqual([1, 0, 0]);
});

test("log and metrics show the tokens that were counted", async () => {
  const tokens = async (): Promise<number> => {
    const response = await fetch(`${gate.adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } });
    return Number(/^tollgate_tokens_total{direction="input"} (\d+)$/m.exec(await response.text())?.[1]);
  };
  const before = await tokens();
  const id = await create({ background: 1 });
  await retrieve(id);
  expect((await tokens()) - before).toBe(20);
  const ended = gate.log.filter(({ message, path }) => message === "Request ended" && path === `/v1/responses/${id}`);
  expect(ended.map(({ inputTokens }) => inputTokens)).toEqual([20, 0, 0]);
});

test("a response of another key cannot be gone on with, however its name is written; an own or unknown one can", async () => {
  const id = await create({});
  const other = await gate.admin.createKey("goes on");
  const goOn = async (key: string, body: string | Uint8Array<ArrayBuffer>, encoding?: string): Promise<number> => {
    const headers = {
      "x-api-key": key,
      "content-type": "application/json",
      ...(encoding !== undefined && { "content-encoding": encoding }),
    };
    const response = await fetch(`${gate.url}/v1/responses`, { method: "POST", headers, body });
    await response.text();
    return response.status;
  };
  const bodies = [
    `{"model":"m","previous_response_id":"${id}"}`,
    `{"model":"m","previous_response\\u005fid":"${id}"}`,
    `{"model":"m","previous_response_id":"resp_0","previous_response_id":"${id}"}`,
    `{"model":"m","previous_response_id":"${id}","previous_response_id":"resp_0"}`,
    // Go reads these too, and LiteLLM the last.
    `{"model":"m","Previous_Response_ID":"${id}"}`,
    `{"model":"m","previou\u017f_response_id":"${id}"}`,
    `{"model":"m","extra_body":{"previous_response_id":"${id}"}}`,
  ];
  for (const body of bodies) {
    expect(await goOn(gate.key, body)).toBe(200);
    const before = await gate.readKey();
    expect(await goOn(other.key, body)).toBe(404);
    expect(await goOn(other.key, new Uint8Array(zstdCompressSync(body)), "zstd")).toBe(404);
    expect(countsOf(await gate.readKey())).toEqual(countsOf(before));
  }
  expect(await goOn(other.key, `{"model":"m","input":"${id}","previous_response_id":null}`)).toBe(200);
  expect(await goOn(other.key, `{"model":"m","previous_response_id":"resp_unknown"}`)).toBe(200);
});

test("a body under /v1/responses or /v1/batches is read for that whatever it is called, and forwarded as it came", async () => {
  const id = await create({});
  const other = await gate.admin.createKey("reads aside");
  const post = async (path: string, headers: Record<string, string>, sent: string | Uint8Array<ArrayBuffer>) => {
    const init = { method: "POST", headers: { "x-api-key": other.key, ...headers }, body: sent };
    return (await fetch(gate.url + path, init)).json() as Promise<{ error?: { code: string }; came?: string }>;
  };
  const refers = (to: string): string =>
    `{"model":"m","max_tokens":99999999,"previous_response_id":"${to}","input_file_id":"${to}"}`;
  const zstd = (text: string) => new Uint8Array(zstdCompressSync(text));
  const text = { "content-type": "text/plain" };
  const encoded = { "content-type": "application/json", "content-encoding": "zstd" };
  expect(await post("/v1/responses/compact", text, refers(id))).toMatchObject({ error: { code: "not_found" } });
  expect(await post("/v1/responses/compact", encoded, zstd(refers(id)))).toMatchObject({
    error: { code: "not_found" },
  });
  for (const [headers, sent] of [
    [text, refers("resp_unknown")],
    [encoded, zstd(refers("resp_unknown"))],
    [encoded, "no zstd"],
    [{ "content-encoding": "x" }, "unknown"],
    [text, "no JSON"],
    [{ "content-type": "application/json" }, '{"no": JSON'],
  ] as const) {
    const { came } = await post("/v1/responses/compact", headers, sent);
    expect(came).toBe(Buffer.from(sent).toString("latin1"));
  }
});
