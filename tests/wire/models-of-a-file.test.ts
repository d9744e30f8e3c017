import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { backendOf, fileCatalog, modelOf, replaceableCatalog } from "../support/catalog.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";
import { errorOf } from "../support/tollgate-with-keys.ts";

interface Seen {
  backend: string;
  path: string;
  body: string;
}

const seen: Seen[] = [];
const usage = { prompt_tokens: 5, completion_tokens: 7 };
/** What each backend lists. */
const lists: Record<string, string[]> = { "gpu-a": ["Org/Coder"], attic: ["embedder"] };
const asked: Record<string, number> = {};

function serveAs(name: string) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname: path } = new URL(request.url);
      if (path === "/v1/models") {
        asked[name] = (asked[name] ?? 0) + 1;
        return Response.json({ data: lists[name]?.map((id) => ({ id, max_model_len: 4096 })) });
      }
      seen.push({ backend: name, path, body: await request.text() });
      return Response.json({ model: "as the backend says", choices: [], usage });
    },
  });
  const { origin } = server.url;
  return { server, backend: backendOf(name, { url: origin, baseUrl: origin }) };
}

const servers = [serveAs("gpu-a"), serveAs("attic")] as const;
const backends = servers.map(({ backend }) => backend);
const coder = modelOf("coder", ["gpu-a"], { servedAs: "Org/Coder", aliases: ["claude-*"], reasoning: true });
const embedder = modelOf("embedder", ["attic"]);
const whole = fileCatalog(backends, [coder, embedder]);
const current = replaceableCatalog(whole);

const gate = shared(() => startTollgate({}, { catalog: current }));
beforeEach(() => {
  seen.length = 0;
  current.replace(whole);
});
afterAll(async () => {
  for (const { server } of servers) await server.stop(true);
});

let keys = 0;
async function keyFor(fields: object): Promise<string> {
  keys += 1;
  return (await gate.admin.createKey(`key ${keys}`, { ...fields })).key;
}

const post = (path: string, model: string | undefined, key = gate.key): Promise<Response> =>
  gate.send(path, { model, messages: [] }, { key });
const sent = (): unknown[] =>
  seen.map(({ backend, body }) => [backend, (JSON.parse(body) as { model?: unknown }).model]);

describe("a request for a model of the file", () => {
  test("goes to its backend with the name that this one knows, and counts under the file's", async () => {
    for (const name of ["CODER", "claude-opus-4[1m]", "coder-nonthinking", "embedder"]) {
      expect((await post("/v1/chat/completions", name)).status).toBe(200);
    }
    const coderSent = ["gpu-a", "Org/Coder"];
    expect(sent()).toEqual([coderSent, coderSent, coderSent, ["attic", "embedder"]]);
    const { rows } = await gate.admin.expectOk<{ rows: { model: string; request_count: number }[] }>(
      "GET",
      "/api/usage/costs?by=model",
    );
    expect(Object.fromEntries(rows.map(({ model, request_count: count }) => [model, count]))).toEqual({
      coder: 3,
      embedder: 1,
    });
    expect(await gate.admin.listRequests("?limit=1&model=embedder")).toMatchObject([
      { model_asked: "embedder", model_sent: "embedder" },
    ]);
  });

  test("gets 404 with the names that there are, if nobody has that model", async () => {
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/rerank"]) {
      expect(await errorOf(await post(path, 'gpt"5'))).toMatchObject({
        status: 404,
        type: "not_found_error",
        code: "model_not_found",
        message: 'There is no model "gpt\\"5"; there are: coder, embedder.',
      });
    }
    expect(seen).toEqual([]);
  });

  test("gets the default model instead, if the file has one", async () => {
    current.replace({ ...whole, defaultModel: "embedder" });
    expect((await post("/v1/chat/completions", "gpt-5")).status).toBe(200);
    expect(sent()).toEqual([["attic", "embedder"]]);
  });

  test("and without a name goes to a backend as it is", async () => {
    expect((await post("/v1/chat/completions", undefined)).status).toBe(200);
    expect(sent()).toEqual([["gpu-a", undefined]]);
  });
});

describe("allowed_models of a key", () => {
  test.each([
    ["the model's name", ["coder"], "claude-x", 200, undefined],
    ["the name asked for", ["claude-*"], "Claude-x", 200, undefined],
    ["not the name that backends know", ["org/*"], "coder", 403, "model_not_allowed"],
    ["another name", ["embedder"], "coder", 403, "model_not_allowed"],
    ["a name that nobody has", ["gpt-*", "embedder"], "gpt-5", 404, "model_not_found"],
  ])("hold for %s", async (_, allowed, name, status, code) => {
    const response = await post("/v1/chat/completions", name, await keyFor({ allowed_models: allowed }));
    const body = (await response.json()) as { error?: { code: string; message: string } };
    expect([response.status, body.error?.code]).toEqual([status, code]);
    // What the key may not use, it does not see.
    if (status === 404) expect(body.error?.message).toEndWith("there are: embedder.");
  });
});

test("a list has what a backend can do and no path of its host, and a model's card has its own id", async () => {
  const entry = { max_model_len: 512, root: "/mnt/q3", type: "embedding" };
  using one = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ data: [{ id: "/mnt/q3", ...entry }] }),
  });
  const { origin: url } = one.url;
  const models = [modelOf("/mnt/q3", ["one"], { aliases: ["q3"] }), modelOf("mnt/q3", ["one"], { servedAs: "x" })];
  const catalog = replaceableCatalog(fileCatalog([backendOf("one", { url, baseUrl: url })], models));
  await using started = await startTollgate({}, { catalog });
  const { key } = await started.admin.createKey("one", { allowed_models: ["/mnt/q3"] });
  const get = (path: string) => started.send(`/v1/models${path}`, undefined, { key });
  const card = { context_length: 512, kind: "embedding", max_model_len: 512, type: "embedding" };
  await pollUntil(async () => ((await (await get("/q3")).json()) as { kind?: string }).kind !== undefined);
  expect(await (await get("")).json()).toEqual({ object: "list", data: [{ id: "/mnt/q3", ...card }] });
  for (const path of ["//mnt/q3", "/%2Fmnt%2Fq3"]) {
    expect(await (await get(path)).json()).toEqual({ id: "/mnt/q3", ...card });
  }
  expect(await (await get("/q3")).json()).toEqual({ id: "q3", ...card });
  expect((await get("/mnt/q3")).status).toBe(403);
});

describe("a form", () => {
  const send = (form: FormData, key = gate.key): Promise<Response> =>
    gate.send("/v1/audio/transcriptions", form, { key });
  const formOf = (model: string): FormData => {
    const form = new FormData();
    form.set("model", model);
    form.set("file", new Blob(["x".repeat(200_000)]), "speech.wav");
    return form;
  };

  test("goes to its model's backend unedited, and counts under the file's name", async () => {
    expect((await send(formOf("claude-voice"))).status).toBe(200);
    const [{ backend, body } = { backend: "", body: "" }] = seen;
    expect(backend).toBe("gpu-a");
    expect(body).toContain('name="model"\r\n\r\nclaude-voice\r\n');
    expect(body.length).toBeGreaterThan(200_000);
    const [row] = await gate.admin.listRequests("?limit=1");
    expect(row).toMatchObject({ model_asked: "claude-voice", model_sent: "claude-voice" });
  });

  test("for a model that nobody has gets 404", async () => {
    expect(await errorOf(await send(formOf("whisper")))).toMatchObject({ status: 404, code: "model_not_found" });
  });

  test("of a key with allowed_models goes there too, if it names one of them", async () => {
    const key = await keyFor({ allowed_models: ["claude-voice"] });
    expect((await send(formOf("claude-voice"), key)).status).toBe(200);
    expect(await errorOf(await send(formOf("coder"), key))).toMatchObject({ status: 403, code: "model_not_allowed" });
  });
});

test("Explain tells what the file says", async () => {
  const explain = (model: string) =>
    gate.admin.expectOk<object>("POST", "/api/explain", {
      path: "/v1/chat/completions",
      body: JSON.stringify({ model, max_tokens: 99_999, messages: [{ role: "user", content: "hi" }] }),
    });
  expect(await explain("claude-x")).toMatchObject({
    refused: null,
    model: { asked: "claude-x", sent: "Org/Coder" },
    edits: [
      { what: "model", why: "Backends call coder Org/Coder; its name and its aliases become that." },
      { what: "max_tokens", why: expect.stringContaining("max_output_tokens of coder (16384)") as string },
      { what: "thinking", why: expect.stringContaining("reasoning of coder is true") as string },
    ],
  });
  expect(await explain("gpt-5")).toMatchObject({ refused: "model_not_found" });
});

describe("the models that a backend lists itself", () => {
  test("are served by it and listed with the file's, and gone when it lists them no more", async () => {
    const finders = servers.map(({ backend }) =>
      backendOf(backend.name, { ...backend, discover: backend.name === "attic" }),
    );
    const list = async (): Promise<string[]> =>
      ((await (await gate.send("/v1/models")).json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    lists["attic"] = ["Org/Coder", "found"];
    asked["attic"] = 0;
    current.replace(fileCatalog(finders, [coder]));
    await pollUntil(async () => (await list()).length === 3);
    expect(await list()).toEqual(["coder", "coder-nonthinking", "found"]);
    expect(await (await gate.send("/v1/models/FOUND")).json()).toEqual({
      id: "found",
      max_model_len: 4096,
      context_length: 4096,
      max_output_tokens: 16_384,
    });
    expect((await post("/v1/chat/completions", "Found")).status).toBe(200);
    expect(sent()).toEqual([["attic", "found"]]);

    lists["attic"] = ["other"];
    // An error is a reason to ask again.
    expect(await errorOf(await post("/v1/chat/completions", "other"))).toMatchObject({ code: "model_not_found" });
    await pollUntil(async () => (await list()).includes("other"));
    expect(await list()).toEqual(["coder", "coder-nonthinking", "other"]);
    expect(asked["attic"]).toBe(2);
    await servers[1].server.stop(true);
    expect(await list()).toEqual(["coder", "coder-nonthinking", "other"]);
  });

  test("have names that a file could have, never another's in other case, and what two list is logged", async () => {
    const odd = ["esc\u001b[2J", "two\nlines", "c1\u009b", "\u202eover", "iso\u2066late", "a b", "a*", "x".repeat(201)];
    const serve = (...ids: string[]) =>
      Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => Response.json({ data: ids.map((id) => ({ id })), choices: [], usage }),
      });
    using first = serve("Big/One", "both", "한글-7B", ...odd);
    using second = serve("big/one", "Big/One[1m]", "both", "own");
    const finders = [first, second].map(({ url: { origin: url } }, at) =>
      backendOf(`finder-${at}`, { url, baseUrl: url, discover: true }),
    );
    await using started = await startTollgate({}, { catalog: replaceableCatalog(fileCatalog(finders, [])) });
    const list = await (await started.send("/v1/models")).json();
    expect((list as { data: { id: string }[] }).data.map(({ id }) => id)).toEqual([
      "Big/One",
      "both",
      "한글-7B",
      "own",
    ]);
    for (const [model, status] of [
      ["big/one", 200],
      [odd[0], 404],
    ] as const) {
      expect((await started.send("/v1/chat/completions", { model, messages: [] })).status).toBe(status);
    }
    const told = started.log
      .filter(({ message }) => String(message).startsWith("Backend lists"))
      .map(({ message, time: _time, ...fields }) => [message, fields]);
    expect(told).toEqual([
      [
        "Backend lists names that MODELS_FILE could not have, which are left out",
        expect.objectContaining({ backend: "finder-0", model: odd[0] }),
      ],
      [
        "Backend lists another one's models in other spelling, which are left out",
        expect.objectContaining({ backend: "finder-1", other: "finder-0", model: "big/one" }),
      ],
      [
        "Backend lists models that another one lists too, so each gets part of their requests",
        expect.objectContaining({ backend: "finder-1", other: "finder-0", model: "both" }),
      ],
    ] as never);
  });

  test("are known to the first request, unless the backend is slow to list them", async () => {
    let delayMs = 200;
    using slow = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch({ url }) {
        // Plays a busy backend.
        if (url.endsWith("/v1/models")) await Bun.sleep(delayMs);
        return Response.json({ data: [{ id: "late" }], choices: [], usage });
      },
    });
    const { origin } = slow.url;
    const catalog = fileCatalog([backendOf("slow", { url: origin, baseUrl: origin, discover: true })], []);
    const statusOfFirst = async (): Promise<number> => {
      await using started = await startTollgate({}, { catalog: replaceableCatalog(catalog) });
      return (await started.send("/v1/chat/completions", { model: "late", messages: [] })).status;
    };
    expect(await statusOfFirst()).toBe(200);
    delayMs = 10_000;
    expect(await statusOfFirst()).toBe(404);
  });
});

test("without a file, the backend's list passes byte for byte, and no name of it reaches the log or a label raw", async () => {
  const name = "x\u001b[2J\u009b\u202ey";
  const list = `{ "data" :[{"id":${JSON.stringify(name)},"b":1}]}\n`;
  using backend = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => (url.endsWith("/v1/models") ? new Response(list) : Response.json({ choices: [], usage })),
  });
  const program = await startProgramWithKey(backend.url.origin, { LOG_LEVEL: "info" });
  const { send, admin } = program;
  expect(await (await send("/v1/models")).text()).toBe(list);
  expect((await send("/v1/chat/completions", { model: name, messages: [] })).status).toBe(200);
  const metrics = await (await admin.request("GET", "/metrics")).text();
  expect(metrics).toContain(String.raw`tollgate_model_requests_total{model="x\\u001b[2J\\u009b\\u202ey"} 1`);
  await program.stop();
  expect(program.stdout()).toContain(String.raw`x\u001b[2J`);
  // oxlint-disable-next-line no-control-regex -- these are what it looks for
  const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
  expect([raw.test(metrics), raw.test(program.stdout())]).toEqual([false, false]);
});
