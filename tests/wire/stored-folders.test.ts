import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { storedFolders } from "../../src/domain/usage-event.ts";
import { catalogWith, replaceableCatalog } from "../support/catalog.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

/** Makes something with each POST, under an id that it chooses, and has whatever path names one of these. */
function startKeeper(name: string) {
  const kept = new Set<string>();
  const bodies: unknown[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const segments = new URL(request.url).pathname.split("/");
      if (request.method === "POST") {
        bodies.push(await request.json());
        const id = `${segments.at(-1)}-${name}-${kept.size}`;
        const file = { id: `file-${name}-${kept.size}` };
        for (const one of [id, file.id]) kept.add(one);
        return Response.json({ id, file });
      }
      const status = segments.some((segment) => kept.has(segment)) ? 200 : 404;
      return Response.json({ result_files: [`file-of-${segments.at(-1)}`], error_file_id: null }, { status });
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, kept, bodies, stop: () => server.stop(true) };
}

describe.each([1, 2])("with %p of two backends", (count) => {
  const keepers = [startKeeper("first"), startKeeper("second")];
  const backends = keepers.map(({ url }, index) => ({ name: `b${index}`, url })).slice(0, count);
  const models = backends.map(({ name }) => ({ name: `at-${name}`, backends: [name] }));
  let gate: Tollgate;
  let other: string;
  beforeAll(async () => {
    gate = await startTollgate({}, { catalog: replaceableCatalog(catalogWith(backends, models)) });
    other = (await gate.admin.createKey("other")).key;
  });
  afterAll(async () => {
    await gate[Symbol.asyncDispose]();
    for (const { stop } of keepers) await stop();
  });

  const send = (key: string, method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(`${gate.url}/v1/${path}`, {
      method,
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const statusFor = async (key: string, method: string, path: string, body?: unknown): Promise<number> =>
    (await send(key, method, path, body)).status;
  const make = async (path: string): Promise<{ id: string; file: { id: string } }> =>
    (await (await send(gate.key, "POST", path, { model: models.at(-1)?.name })).json()) as {
      id: string;
      file: { id: string };
    };

  test.each(storedFolders)("what a key has under /v1/%s does not exist for another", async (folder) => {
    const { id } = await make(folder);
    const asked: [method: string, path: string, body?: object][] = [
      ["GET", `${folder}/${id}`],
      ["GET", `${folder}/${id}/results`],
      ["GET", `${folder.replace("e", "%65")}//${id}/./items`],
      ["POST", `${folder}/${id}/cancel`, {}],
      ["DELETE", `${folder}/${id}`],
    ];
    for (const [method, path, body] of asked) {
      expect([path, await statusFor(other, method, path, body)]).toEqual([path, 404]);
      expect([path, await statusFor(gate.key, method, path, body)]).toEqual([path, 200]);
    }
    keepers[0]?.kept.add("made-elsewhere");
    expect(await statusFor(other, "GET", `${folder}/made-elsewhere`)).toBe(200);
  });

  const long = "x".repeat(100_000);
  test.each<[path: string, refersTo: string, body: (id: string) => object]>([
    ["responses", "conversations", (id) => ({ conversation: id, input: "a" })],
    ["responses", "conversations", (id) => ({ conversation: { id }, input: "a" })],
    ["responses", "conversations", (id) => ({ conversation: { id }, input: long })],
    ["responses", "conversations", (id) => ({ input: long, Conversation: { ID: id } })],
    ["responses/compact", "conversations", (id) => ({ extra_body: { conversation: id } })],
    ["vector_stores", "files", (id) => ({ file_ids: ["unknown", id, 1] })],
    ["vector_stores/unknown/files", "files", (file_id) => ({ file_id })],
    ["containers", "files", (id) => ({ file_ids: [id] })],
    ["fine_tuning/jobs", "files", (training_file) => ({ training_file })],
    ["fine_tuning/jobs", "files", (validation_file) => ({ validation_file })],
    ["threads/unknown/runs", "assistants", (assistant_id) => ({ assistant_id })],
  ])("a body of /v1/%s refers to nothing of another key's %s", async (path, refersTo, bodyWith) => {
    const { id } = await make(refersTo);
    for (const repeated of [1, 2]) {
      expect([repeated, await statusFor(gate.key, "POST", path, bodyWith(id))]).toEqual([repeated, 200]);
      expect([repeated, await statusFor(other, "POST", path, bodyWith(id))]).toEqual([repeated, 404]);
      expect([repeated, await statusFor(other, "POST", path, bodyWith("unknown"))]).toEqual([repeated, 200]);
    }
    // It reached the backend that has it, unchanged.
    const { bodies } = keepers.find(({ kept }) => kept.has(id)) ?? { bodies: [] };
    expect(bodies).toContainEqual(bodyWith(id));
  });

  test("the file of an upload, and those that a job of fine-tuning wrote, are their key's", async () => {
    const { id: upload } = await make("uploads");
    const { file } = await make(`uploads/${upload}/complete`);
    expect(await statusFor(gate.key, "GET", `files/${file.id}`)).toBe(200);
    expect(await statusFor(other, "GET", `files/${file.id}`)).toBe(404);
    const { id: job } = await make("fine_tuning/jobs");
    const shown = await send(gate.key, "GET", `fine_tuning/jobs/${job}`);
    const { result_files: [result = ""] = [] } = (await shown.json()) as { result_files?: string[] };
    for (const { kept } of keepers) kept.add(result);
    expect(await statusFor(gate.key, "GET", `files/${result}/content`)).toBe(200);
    expect(await statusFor(other, "GET", `files/${result}/content`)).toBe(404);
  });
});
