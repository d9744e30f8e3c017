import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";

/** What the backend responds with next. */
let respond: () => Response;
const backend = Bun.serve({ port: 0, fetch: () => respond() });
const gate = shared(() =>
  startTollgate({
    PROXY_UPSTREAM_URL: backend.url.origin,
    PROXY_ALIAS_MODEL: "open",
    PROXY_FAMILY_MODEL: "open",
  }),
);
/** A key that may use `open` only, and that name's synthetic model. */
let key: string;
beforeAll(async () => {
  ({ key } = await gate.admin.createKey("limited", { allowed_models: ["open*"] }));
});
afterAll(() => backend.stop(true));

const get = (path: string, as = key): Promise<Response> => gate.send(path, undefined, { key: as });

const list = { object: "list", data: [{ id: "open" }, { id: "secret" }] };
const json = (body: string, status = 200): Response =>
  new Response(body, { status, headers: { "content-type": "application/json" } });
const gzipped = (): Response =>
  new Response(Bun.gzipSync(JSON.stringify(list)), {
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
  });
const huge = (): Response => json(JSON.stringify({ ...list, padding: "x".repeat(4 * 1024 * 1024) }));
const chunked = (): Response => {
  const parts = [JSON.stringify(list).slice(0, -1), ',"padding":"', ...Array(80).fill("x".repeat(65_536)), '"}'];
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const part = parts.shift();
        if (part === undefined) controller.close();
        else controller.enqueue(Buffer.from(part));
      },
    }),
    { headers: { "content-type": "application/json" } },
  );
};

test.each([
  "/v1/models/secret",
  "/v1//models/secret",
  "//v1/models//secret/",
  "/v1/models%2Fsecret",
  "/v1/models/secret%0A",
  "/v1/models/%zz",
])("a key cannot read of a model that it may not use at %s", async (path) => {
  respond = () => json('{"id":"secret"}');
  const response = await get(path);
  expect([response.status, await response.json()]).toMatchObject([403, { error: { code: "model_not_allowed" } }]);
});

test.each(["/v1/models/open", "/v1//models/open"])("a key may read of its own model at %s", async (path) => {
  respond = () => json('{"id":"open"}');
  expect(await (await get(path)).json()).toEqual({ id: "open" });
});

test.each(["?model=secret", "?a=b&mod%65l=secret", "?model=open&model=secret", "?model=secret#"])(
  "a key cannot name a model that it may not use in the query of a request, which LiteLLM prefers, as %s",
  async (query) => {
    respond = () => json("{}");
    const client = await gate.sendRaw(`/v1/chat/completions${query}`, { model: "open" }, { key });
    expect([(await client.head()).status, await client.json()]).toMatchObject([
      403,
      { error: { code: "model_not_allowed" } },
    ]);
    client.close();
  },
);

test("a key may name its own model in the query of a request", async () => {
  respond = () => json('{"id":"open"}');
  const path = "/v1/chat/completions?model=open&x=y";
  expect((await gate.send(path, { model: "open" }, { key })).status).toBe(200);
});

describe("of a model list, a key sees no name that is not allowed", () => {
  test.each<[string, () => Response]>([
    ["is compressed", gzipped],
    ["is too long", huge],
    ["is too long, of a length that is not known", chunked],
    ["is cut", () => json('{"data":[{"id":"secret"')],
    ["is another shape", () => json('[{"id":"secret"}]')],
    ["is a part", () => json('[{"id":"secret"}', 206)],
    ["has no length and no JSON", () => new Response("secret")],
  ])("if it %s: then it is refused", async (_, response) => {
    respond = response;
    for (const path of ["/v1/models", "/v1/models/open-nonthinking"]) {
      const refused = await get(path);
      const text = await refused.text();
      expect(text).not.toContain("secret");
      expect([refused.status, refused.headers.get("x-should-retry"), JSON.parse(text)]).toMatchObject([
        502,
        "false",
        { error: { type: "api_error", code: "model_list_unreadable" } },
      ]);
    }
  });

  test("if names stand outside of its data", async () => {
    respond = () =>
      json(
        JSON.stringify({
          models: [
            { name: "secret", model: "secret" },
            { name: "open", model: "open" },
            { name: "open", model: "secret" },
          ],
          ...list,
          first_id: "secret",
          others: { secret: {} },
          has_more: false,
        }),
      );
    const response = await get("/v1/models");
    const body: unknown = await response.json();
    expect(body).toEqual({
      object: "list",
      has_more: false,
      data: [{ id: "open" }, { id: "open-nonthinking" }],
      models: [{ name: "open", model: "open" }],
    });
  });

  test.each(["/v1/models%0A", "/v1/models%2F."])(
    "if it is at %s, which some backends take for the list",
    async (path) => {
      respond = () => json(JSON.stringify(list));
      const { data } = (await (await get(path)).json()) as { data: unknown };
      expect(data).toEqual([{ id: "open" }]);
    },
  );

  test("if a fragment follows the path, which the backend does not get", async () => {
    respond = () => json(JSON.stringify(list));
    const client = await gate.sendRaw("/v1/models#x", undefined, { key });
    expect(await client.json()).toEqual({ object: "list", data: [{ id: "open" }, { id: "open-nonthinking" }] });
    client.close();
  });

  test("if its data comes twice", async () => {
    respond = () => json('{"data":[{"id":"secret"}],"data":[{"id":"open","n":1.0}]}');
    expect(await (await get("/v1/models?x=1")).text()).toContain('"data":[{"id":"open","n":1}');
    expect(await (await get("/v1/models")).text()).not.toContain("secret");
  });

  test("and an error of the backend passes as it is", async () => {
    respond = () => json('{"error":"not now"}', 503);
    const response = await get("/v1/models");
    expect([response.status, await response.text()]).toEqual([503, '{"error":"not now"}']);
  });

  test("while a key without that rule gets the backend's own bytes", async () => {
    respond = gzipped;
    expect(await (await get("/v1/models", gate.key)).json()).toEqual(list);
    respond = chunked;
    expect(await (await get("/v1/models", gate.key)).text()).toContain("secret");
  });
});
