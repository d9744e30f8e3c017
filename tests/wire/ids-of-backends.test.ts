import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { catalogWith, replaceableCatalog } from "../support/catalog.ts";
import { type EngineName, whyNoPostgres } from "../support/postgres.ts";
import { type ResponsesBackend, startResponsesBackend } from "../support/responses-backend.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

/** Stores files and batches beside responses, and says of each where it is. */
function startBackend(name: string): ResponsesBackend & { held: string[] } {
  const responses = startResponsesBackend();
  const held: string[] = [];
  const seen: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const [, , folder = "", id] = pathname.split("/");
      seen.push(`${request.method} ${pathname.replace("/v1", "")}`);
      if (folder === "responses")
        return fetch(responses.url + pathname, { method: request.method, body: request.body });
      if (id === undefined && request.method === "POST") {
        const made = `${folder}-${name}-${held.length}`;
        held.push(made);
        return Response.json({ id: made, object: folder });
      }
      if (id?.endsWith("output") === true) return new Response(`output of ${name}`);
      if (id === undefined || !held.includes(id)) return Response.json({ error: {} }, { status: 404 });
      return Response.json({ id, at: name, output_file_id: folder === "batches" ? `file-${id}-output` : undefined });
    },
  });
  return {
    ...responses,
    url: `http://127.0.0.1:${server.port}`,
    seen,
    held,
    [Symbol.dispose]() {
      responses[Symbol.dispose]();
      void server.stop(true);
    },
  };
}

const engines: EngineName[] = ["SQLite", ...(whyNoPostgres === undefined ? ["PostgreSQL" as const] : [])];

describe.each(engines)("on %s", (engine) => {
  const [first, second] = [startBackend("first"), startBackend("second")];
  const all = [
    { name: "first", url: first.url },
    { name: "second", url: second.url },
  ];
  const models = [
    { name: "one", backends: ["first"] },
    { name: "two", backends: ["second"] },
  ];
  const catalog = replaceableCatalog(catalogWith(all, models));
  let gate: Tollgate;
  let other: string;
  beforeAll(async () => {
    gate = await startTollgate({}, { catalog, engine });
    other = (await gate.admin.createKey("other")).key;
  });
  afterAll(async () => {
    await gate[Symbol.asyncDispose]();
    first[Symbol.dispose]();
    second[Symbol.dispose]();
  });

  const send = (method: string, path: string, body?: object, key = gate.key): Promise<Response> =>
    fetch(`${gate.url}/v1${path}`, {
      method,
      headers: { "x-api-key": key, "content-type": "application/json", "x-tollgate-debug": "1" },
      ...(body && { body: JSON.stringify(body) }),
    });

  async function idOf(response: Promise<Response>): Promise<string> {
    const { id } = (await (await response).json()) as { id: string };
    return id;
  }

  const placeOf = async (response: Promise<Response>): Promise<[number, string | null]> => {
    const { status, headers } = await response;
    return [status, headers.get("x-tollgate-backend")];
  };

  test("a response is read and deleted where it was made, and goes on there", async () => {
    const id = await idOf(send("POST", "/responses", { model: "two", request_id: `resp-${engine}` }));
    expect(await placeOf(send("GET", `/responses/${id}`))).toEqual([200, "second"]);
    expect(await placeOf(send("POST", "/responses", { model: "one", previous_response_id: id }))).toEqual([
      200,
      "second",
    ]);
    expect(await placeOf(send("DELETE", `/responses/${id}`))).toEqual([200, "second"]);
  });

  test("a response of another key does not exist, and cannot be gone on with", async () => {
    const id = await idOf(send("POST", "/responses", { model: "two", request_id: `other-${engine}` }, other));
    const before = second.seen.length;
    expect(await placeOf(send("GET", `/responses/${id}`))).toEqual([404, null]);
    expect(await placeOf(send("POST", "/responses", { model: "two", previous_response_id: id }))).toEqual([404, null]);
    expect(second.seen.length).toBe(before);
  });

  test("two keys that choose one id at different backends each have their own", async () => {
    const id = `shared-${engine}`;
    await idOf(send("POST", "/responses", { model: "one", request_id: id, input: "mine", created_at: 5 }));
    await idOf(send("POST", "/responses", { model: "two", request_id: id, input: "theirs", created_at: 6 }, other));
    expect(await placeOf(send("GET", `/responses/${id}`))).toEqual([200, "first"]);
    expect(await placeOf(send("GET", `/responses/${id}`, undefined, other))).toEqual([200, "second"]);
    expect(await placeOf(send("DELETE", `/responses/${id}`))).toEqual([200, "first"]);
  });

  test("an unknown id goes to the first backend, and is charged to its reader once", async () => {
    first.put(`unknown-${engine}`, 7);
    const before = (await gate.readKey()).total_output_tokens;
    for (let read = 0; read < 2; read++) {
      const response = await send("GET", `/responses/unknown-${engine}`);
      expect([response.status, response.headers.get("x-tollgate-backend")]).toEqual([200, "first"]);
      await response.text();
    }
    expect((await gate.readKey()).total_output_tokens - before).toBe(7);
  });

  test("a batch goes where its file is, and its output comes from there", async () => {
    // Uploads name no model, and go to the first backend.
    const file = await idOf(send("POST", "/files", {}));
    expect(file).toStartWith("files-first");
    expect(await placeOf(send("GET", `/files/${file}/content`))).toEqual([200, "first"]);
    expect(await placeOf(send("GET", `/files/${file}`, undefined, other))).toEqual([404, null]);
    // Now another backend is the first.
    catalog.replace(catalogWith(all.toReversed(), models));
    const batch = await idOf(send("POST", "/batches", { input_file_id: file, endpoint: "/v1/responses" }));
    expect(batch).toStartWith("batches-first");
    expect(await placeOf(send("POST", "/batches", { input_file_id: file }, other))).toEqual([404, null]);
    expect(await placeOf(send("POST", `/batches/${batch}/cancel`))).toEqual([200, "first"]);
    const { output_file_id: output } = (await (await send("GET", `/batches/${batch}`)).json()) as {
      output_file_id: string;
    };
    expect(await placeOf(send("GET", `/files/${output}/content`))).toEqual([200, "first"]);
    expect(await placeOf(send("GET", `/files/${output}/content`, undefined, other))).toEqual([404, null]);
    catalog.replace(catalogWith(all, models));
  });

  test("what is at a backend that is no longer configured is not found, and the error says why", async () => {
    const id = await idOf(send("POST", "/responses", { model: "two", request_id: `left-${engine}` }));
    catalog.replace(catalogWith([...all.slice(0, 1), { name: "third", url: first.url }], models.slice(0, 1)));
    const response = await send("GET", `/responses/${id}`);
    expect([response.status, await response.json()]).toMatchObject([
      404,
      {
        error: {
          code: "not_found",
          message: "What this id names is at the backend second, which is no longer configured.",
        },
      },
    ]);
    catalog.replace(catalogWith(all, models));
    expect((await send("GET", `/responses/${id}`)).status).toBe(200);
  });
});

test("with one backend, files and batches are those of the key that made them too", async () => {
  using backend = startBackend("only");
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
  const { key: other } = await gate.admin.createKey("other");
  const send = (key: string, method: string, path: string, body?: object): Promise<Response> =>
    fetch(`${gate.url}/v1${path}`, {
      method,
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
  const make = async (path: string, body: object): Promise<Record<string, string>> =>
    (await (await send(gate.key, "POST", path, body)).json()) as Record<string, string>;
  const { id: file } = await make("/files", {});
  const { id: batch } = await make("/batches", { input_file_id: file });
  const shown = await send(gate.key, "GET", `/batches/${batch}`);
  const { output_file_id: output } = (await shown.json()) as Record<string, string>;
  const asked: [method: string, path: string, body?: object][] = [
    ["GET", `/files/${file}`],
    ["GET", `/files/${file}/content`],
    ["GET", `/batches/${batch}`],
    ["POST", `/batches/${batch}/cancel`],
    ["POST", "/batches", { input_file_id: file }],
    ["GET", `/files/${output}/content`],
    ["DELETE", `/files/${file}`],
  ];
  for (const one of asked) {
    expect([...one, (await send(other, ...one)).status]).toEqual([...one, 404]);
    expect([...one, (await send(gate.key, ...one)).status]).toEqual([...one, 200]);
  }
  // Nobody created it here.
  backend.held.push("file-of-another-gateway");
  for (const key of [gate.key, other]) {
    expect((await send(key, "GET", "/files/file-of-another-gateway")).status).toBe(200);
  }
});
