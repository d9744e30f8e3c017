import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { logIn } from "../support/admin-client.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProgram } from "../support/program.ts";
import { connectRaw } from "../support/raw-client.ts";
import { type CreateBody, type ResponsesBackend, startResponsesBackend } from "../support/responses-backend.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

type Counts = [requests: number, inputTokens: number, outputTokens: number];

/** What the holder of a key does. */
function holderOf(url: string, key: string) {
  const send = (method: string, path: string, body?: object): Promise<Response> =>
    fetch(url + path, {
      method,
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return {
    send,
    create: (body: CreateBody) => send("POST", "/v1/responses", { model: "m", ...body }),
    read: (id: string, query = "") => send("GET", `/v1/responses/${id}${query}`),
    /** The target goes out as it is, while `fetch` drops a fragment. */
    async readRaw(target: string): Promise<[number, unknown]> {
      const client = await connectRaw(url);
      client.request("GET", target, { "x-api-key": key });
      const { status } = await client.head();
      const body = await client.json();
      client.close();
      return [status, body];
    },
  };
}

const showing = async (response: Response): Promise<[number, string | undefined]> => {
  const text = await response.text();
  return [response.status, /"output":"([^"]*)"/.exec(text)?.[1]];
};

const notFound = {
  type: "error",
  error: { type: "not_found_error", message: "Not found.", param: null, code: "not_found" },
};

const engines = [["SQLite"], ...(whyNoPostgres === undefined ? [["PostgreSQL"]] : [])];

describe.each(engines)("on %s", (engine) => {
  let backend: ResponsesBackend;
  let gate: Tollgate;
  beforeAll(async () => {
    backend = startResponsesBackend();
    const database = engine === "SQLite" ? undefined : await (await sharedPostgres()).createDatabase();
    gate = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      ...(database !== undefined && { DATABASE_URL: database }),
    });
  });
  afterAll(async () => {
    await gate[Symbol.asyncDispose]();
    backend[Symbol.dispose]();
  });

  let names = 0;
  async function openKey(fields: object = {}) {
    names += 1;
    const { id, key } = await gate.admin.expectOk<{ id: number; key: string }>("POST", "/api/keys", {
      name: `${engine} ${names}`,
      ...fields,
    });
    return {
      id,
      ...holderOf(gate.url, key),
      async counts(): Promise<Counts> {
        const row = (await gate.admin.listKeys()).find((one) => one.id === id);
        return [row?.total_request_count ?? 0, row?.total_input_tokens ?? 0, row?.total_output_tokens ?? 0];
      },
    };
  }

  const nextId = (): string => `resp_chosen_${++names}`;

  test("two creates with one id count in full, for one key and for two", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    for (const key of [a, a, b]) await (await key.create({ request_id: id })).text();
    expect(await a.counts()).toEqual([2, 40, 6]);
    expect(await b.counts()).toEqual([1, 20, 3]);
  });

  test("streamed creates with one id count in full", async () => {
    const a = await openKey();
    const id = nextId();
    for (let n = 0; n < 2; n++) {
      const response = await a.create({ request_id: id, stream: true });
      backend.endStreams();
      await response.text();
    }
    expect(await a.counts()).toEqual([2, 40, 6]);
  });

  test("a background response counts once, with the first read that shows its tokens", async () => {
    const a = await openKey();
    const id = nextId();
    await (await a.create({ request_id: id, background: true })).text();
    await (await a.read(id)).text();
    expect(await a.counts()).toEqual([2, 0, 0]);
    backend.complete(id);
    for (const query of ["", "?stream=true", ""]) await (await a.read(id, query)).text();
    await (await a.send("POST", `/v1/responses/${id}/cancel`)).text();
    expect(await a.counts()).toEqual([6, 20, 3]);
  });

  test("a response exists only for the key that created it, however its path is written", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    await (await a.create({ request_id: id, input: "secret" })).text();
    const seenBefore = backend.seen.length;
    for (const [method, path] of [
      ["GET", `/v1/responses/${id}`],
      ["GET", `/v1/responses/${id}?stream=true`],
      ["GET", `/v1/responses/${id}/`],
      ["GET", `/v1//responses//${id}`],
      ["GET", `//v1/responses/${id}`],
      ["GET", `/v1/%72esponses/${id.replace("c", "%63")}`],
      ["GET", `/v1/responses%2F${id}`],
      ["GET", `/v1/responses%u002F${id}`],
      ["GET", `/v1/responses/%2E%2F${id}`],
      ["GET", `/v1/responses/${id}%2F.`],
      ["GET", `/v1/responses/${id}/input_items`],
      ["GET", `/v1/responses/${id}%2Finput_items`],
      ["POST", `/v1/responses/${id}/cancel`],
      ["POST", `/v1/responses/${id}/other`],
      ["DELETE", `/v1/responses/${id}`],
      ["PATCH", `/v1/responses/${id}`],
    ] as const) {
      const response = await b.send(method, path, method === "POST" ? {} : undefined);
      expect([method, path, response.status, await response.json()]).toEqual([method, path, 404, notFound]);
    }
    expect((await b.send("HEAD", `/v1/responses/${id}`)).status).toBe(404);
    for (const suffix of ["#", "#x", "/#?stream=true"]) {
      expect([suffix, ...(await b.readRaw(`/v1/responses/${id}${suffix}`))]).toEqual([suffix, 404, notFound]);
    }
    expect(backend.seen.slice(seenBefore)).toEqual([]);
    expect(await b.counts()).toEqual([0, 0, 0]);
    expect(await showing(await a.read(id))).toEqual([200, "secret"]);
    expect((await a.send("DELETE", `/v1/responses/${id}`)).status).toBe(200);
  });

  test("a streamed response exists only for its key from its first event on", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    const response = await a.create({ request_id: id, stream: true });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    backend.put(id, 3);
    // The first event does not wait until this is stored.
    await pollUntil(async () => (await b.read(id)).status === 404);
    backend.endStreams();
    while (!(await reader.read()).done);
    expect((await b.read(id)).status).toBe(404);
    expect((await a.counts())[2]).toBe(3);
  });

  test("a response that was created elsewhere is shown to all, and counts once for each key that reads it", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    backend.put(id, 5);
    for (const key of [a, a, b, b]) expect((await key.read(id)).status).toBe(200);
    expect([await a.counts(), await b.counts()]).toEqual([
      [2, 20, 5],
      [2, 20, 5],
    ]);
    expect((await a.read("resp_nowhere")).status).toBe(404);
  });

  test("a key that chooses the id of another takes neither the response nor the id", async () => {
    const [a, b, c] = [await openKey(), await openKey(), await openKey()];
    const id = nextId();
    await (await a.create({ request_id: id, background: true, input: "of a", created_at: 1000 })).text();
    await (await b.create({ request_id: id, store: false, input: "of b", created_at: 1002 })).text();
    backend.complete(id);
    expect(await showing(await a.read(id))).toEqual([200, "of a"]);
    expect(await showing(await a.read(id, "?stream=true"))).toEqual([200, "of a"]);
    for (const key of [b, c]) {
      for (const query of ["", "?stream=true"]) {
        const response = await key.read(id, query);
        expect([response.status, await response.json()]).toEqual([404, notFound]);
      }
      expect((await key.read(`${id}/input_items`)).status).toBe(404);
    }
    // Which of the two responses that would end is not known before.
    for (const key of [a, b, c]) {
      expect((await key.send("POST", `/v1/responses/${id}/cancel`)).status).toBe(404);
      expect((await key.send("DELETE", `/v1/responses/${id}`)).status).toBe(404);
    }
    expect([await a.counts(), await b.counts()]).toEqual([
      [3, 20, 3],
      [1, 20, 3],
    ]);
    await (await b.create({ request_id: id, input: "of b", created_at: 1004 })).text();
    expect(await showing(await b.read(id))).toEqual([200, "of b"]);
    expect(await showing(await a.read(id))).toEqual([404, undefined]);
  });

  test("an id is not blocked by a key that used it first", async () => {
    const [squatter, a] = [await openKey(), await openKey()];
    const id = nextId();
    await (await squatter.create({ request_id: id, created_at: 1000 })).text();
    await (await a.create({ request_id: id, background: true, input: "of a", created_at: 1010 })).text();
    backend.complete(id);
    expect(await showing(await a.read(id))).toEqual([200, "of a"]);
    expect((await squatter.read(id)).status).toBe(404);
  });

  test("keys that share an id at a backend without times may both read it", async () => {
    const [a, b, c] = [await openKey(), await openKey(), await openKey()];
    const id = nextId();
    for (const key of [a, b]) await (await key.create({ request_id: id })).text();
    expect([(await a.read(id)).status, (await b.read(id)).status, (await c.read(id)).status]).toEqual([200, 200, 404]);
  });

  test("an id that is chosen again does not hide the tokens of background responses", async () => {
    const a = await openKey();
    const id = nextId();
    // As many tokens as a response that was paid for, and one after the other under one id.
    await (await a.create({ request_id: id })).text();
    for (let n = 0; n < 2; n++) await (await a.create({ request_id: id, background: true })).text();
    for (let n = 0; n < 2; n++) {
      backend.complete(id);
      await (await a.read(id)).text();
    }
    expect(await a.counts()).toEqual([5, 60, 9]);
  });

  test("two keys with one id do not share the tokens of a background response", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    await (await b.create({ request_id: id })).text();
    await (await a.create({ request_id: id, background: true })).text();
    backend.complete(id);
    for (const key of [b, a]) await (await key.read(id)).text();
    expect([await a.counts(), await b.counts()]).toEqual([
      [2, 20, 3],
      [2, 40, 6],
    ]);
  });

  test("what a key has read before it chose the same id does not pay for its own response", async () => {
    const a = await openKey();
    const id = nextId();
    backend.put(id, 3);
    await (await a.read(id)).text();
    await (await a.create({ request_id: id, background: true })).text();
    backend.complete(id);
    await (await a.read(id)).text();
    expect(await a.counts()).toEqual([3, 40, 6]);
  });

  test("an id too long to be known does not hide tokens", async () => {
    const a = await openKey();
    const id = `resp_${"x".repeat(600)}`;
    for (let n = 0; n < 2; n++) {
      await (await a.create({ request_id: id, background: true })).text();
      backend.complete(id);
      await (await a.read(id)).text();
    }
    expect(await a.counts()).toEqual([4, 40, 6]);
  });

  test("nobody blocks a path of the API by choosing its name as an id", async () => {
    const [a, b] = [await openKey(), await openKey()];
    await (await a.create({ request_id: "compact" })).text();
    expect((await b.send("POST", "/v1/responses/compact", { model: "m" })).status).toBe(200);
    expect(await b.counts()).toEqual([1, 20, 3]);
  });

  test("creates with one id use up a limit of tokens", async () => {
    const a = await openKey({ tokens_per_day: 60 });
    const body = { request_id: nextId(), max_output_tokens: 3 };
    for (const status of [200, 200, 429]) expect((await a.create(body)).status).toBe(status);
    expect(await a.counts()).toEqual([2, 40, 6]);
  });

  test("reading a background response uses up a limit of tokens", async () => {
    const a = await openKey();
    const id = nextId();
    const create = (body: CreateBody) => a.create({ max_output_tokens: 3, ...body });
    expect((await create({ request_id: id, background: true })).status).toBe(200);
    backend.complete(id);
    await gate.admin.updateKey(a.id, { tokens_per_day: 50 });
    expect((await a.read(id)).status).toBe(200);
    expect((await create({})).status).toBe(200);
    expect((await create({})).status).toBe(429);
    expect(await a.counts()).toEqual([3, 40, 6]);
  });

  test("the responses of a deleted key stay hidden from others", async () => {
    const [a, b] = [await openKey(), await openKey()];
    const id = nextId();
    await (await a.create({ request_id: id })).text();
    await gate.admin.deleteKey(a.id);
    expect((await b.read(id)).status).toBe(404);
  });

  test("many reads of one background response at one moment count once", async () => {
    const a = await openKey();
    const id = nextId();
    await (await a.create({ request_id: id, background: true })).text();
    backend.complete(id);
    await Promise.all(Array.from({ length: 20 }, async () => (await a.read(id)).text()));
    expect(await a.counts()).toEqual([21, 20, 3]);
  });

  test("what a client saw the end of is its key's own after kill -9, in every process and instance", async () => {
    using folder = createTempFolder();
    const environment = {
      PROXY_UPSTREAM_URL: backend.url,
      ADMIN_PASSWORD: "password",
      SECRET_KEY: "0123456789abcdef",
      LOG_LEVEL: "error",
      DATA_DIR: folder.path,
      ...(engine === "SQLite" ? { PROCESSES: "2" } : { DATABASE_URL: await (await sharedPostgres()).createDatabase() }),
    };
    const id = nextId();
    const first = await startProgram(environment);
    const admin = await logIn(first.adminUrl, "admin", "password");
    const [a, b] = [(await admin.createKey("a")).key, (await admin.createKey("b")).key];
    await (await holderOf(first.url, a).create({ request_id: id, background: true })).text();
    backend.complete(id);
    expect((await holderOf(first.url, b).read(id)).status).toBe(404);
    await (await holderOf(first.url, a).read(id)).text();
    await first.stop("SIGKILL");

    const second = await startProgram(environment);
    const other = engine === "SQLite" ? second : await startProgram(environment);
    for (const { url } of [second, other, second, other]) {
      expect((await holderOf(url, b).read(id)).status).toBe(404);
      expect((await holderOf(url, a).read(id)).status).toBe(200);
    }
    const rows = await (await logIn(other.adminUrl, "admin", "password")).listKeys();
    expect(rows.map((row) => [row.total_request_count, row.total_output_tokens])).toEqual([
      [6, 3],
      [0, 0],
    ]);
    await Promise.all(new Set([second.stop(), other === second ? 0 : other.stop()]));
  }, 60_000);
});
