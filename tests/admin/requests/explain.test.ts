import { describe, expect, test } from "bun:test";
import type { BackendStatus } from "../../../src/domain/backends.ts";
import { explainRewrite } from "../../../src/proxy/rewrite/explain.ts";
import { createModelNames } from "../../../src/proxy/rewrite/model-names.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { startAdmin } from "../support/admin-server.ts";
import { shared } from "../../support/shared.ts";

const admin = shared(() => startAdmin());
const owner = shared(() => admin.login());

const explain = (json: object) => admin.send("POST", "/api/explain", { as: owner, json });

test("an explanation has the body as it would be sent, and a reason for each edit", async () => {
  const body = '{"model":"claude-x", "max_tokens":99999,"messages":[{"role":"user","content":"Why is the sky blue?"}]}';
  const { json } = await explain({ path: "/v1/chat/completions", body });
  expect(json).toMatchObject({
    refused: null,
    changed: true,
    stream: false,
    model: { asked: "claude-x", sent: "Served", name: "Served" },
  });
  expect(json.body).toStartWith('{"model":"Served", "max_tokens":16384,"messages":[{"role":"system"');
  expect(json.edits.map(({ what, from, to }: Record<string, string>) => [what, from, to?.slice(0, 12)])).toEqual([
    ["model", "claude-x", "Served"],
    ["max_tokens", "99999", "16384"],
    ["system_prompt_language", null, "Write in the"],
  ]);
  for (const { why } of json.edits) expect(why).toMatch(/^[A-Z].*\.$/);
});

describe("beside a thinking budget on /v1/messages, it says why max_tokens is not capped as usual,", () => {
  const explained = async (maxTokens: number, budget: number, padding = 0) => {
    const thinking = { type: "enabled", budget_tokens: budget };
    const messages = [{ role: "user", content: "x".repeat(padding) }];
    const body = JSON.stringify({ model: "other", max_tokens: maxTokens, thinking, messages });
    const { json } = await explain({ path: "/v1/messages", body });
    return { edits: json.edits.filter(({ what }: { what: string }) => what === "max_tokens"), kept: json.kept };
  };

  test("if the cap is above the budget: there is nothing to say", async () => {
    expect(await explained(32_000, 16_383)).toMatchObject({ edits: [{ to: "16384" }], kept: [] });
    expect(await explained(9000, 8999)).toEqual({ edits: [], kept: [] });
  });

  test("if MAX_OUTPUT_TOKENS yields and the context has room", async () => {
    const why =
      "MAX_OUTPUT_TOKENS (16384) does not apply, because it is not above thinking.budget_tokens (31999), and the " +
      "context has room for what the request asks for.";
    expect(await explained(32_000, 31_999)).toEqual({ edits: [], kept: [{ what: "max_tokens", why }] });
  });

  test("if the context's bound stays", async () => {
    const { edits, kept } = await explained(32_000, 20_000, 530_000);
    expect(kept).toEqual([]);
    expect(edits).toHaveLength(1);
    expect(edits[0].why).toBe(
      "At most MAX_CONTEXT_TOKENS (202752) less 512 less a third of the body's characters. MAX_OUTPUT_TOKENS (16384) " +
        "does not apply, because it is not above thinking.budget_tokens (20000).",
    );
  });

  test("if the context leaves too little", async () => {
    const why =
      "The context leaves no more than thinking.budget_tokens (31999), and backends refuse a limit that is not above it.";
    expect(await explained(32_000, 31_999, 530_000)).toEqual({ edits: [], kept: [{ what: "max_tokens", why }] });
  });
});

test.each([
  ["", "/v1/chat/completions"],
  ["no JSON", "/v1/chat/completions"],
  ['{"model":"unknown"}', "/v1/files"],
])("the body %p on %s is forwarded as it is", async (body, path) => {
  expect((await explain({ path, body })).json).toMatchObject({
    refused: null,
    changed: false,
    body,
    edits: [],
    kept: [],
  });
});

test("a body that would be refused is named as such", async () => {
  const body = `{${Array.from({ length: 70 }, () => '"model":"m"').join()}}`;
  expect((await explain({ path: "/v1/chat/completions", body })).json).toMatchObject({
    refused: "invalid_json",
    changed: false,
  });
});

test.each([
  [{ body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: "/api/keys", body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: "/v1/x?y", body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: `/v1/${"x".repeat(2000)}`, body: "{}" }, "path must be a string that begins with /v1/, without a query"],
  [{ path: "/v1/x", body: {} }, "body must be a string"],
])("%j gets 400", async (json, error) => {
  const response = await explain(json);
  expect([response.status, response.json]).toEqual([400, { error }]);
});

describe("of a file of models", () => {
  const backends = [backendOf("gpu-a"), backendOf("gpu-b"), backendOf("attic", { spill: true })];
  const models = [modelOf("chat", ["gpu-a", "gpu-b", "attic"], { servedAs: "org/chat" }), modelOf("embed", ["attic"])];
  const catalog = fileCatalog(backends, models);
  const states = new Map<string, Partial<BackendStatus>>();
  const withFile = shared(() =>
    startAdmin({
      catalog: () => catalog,
      explain: (path, body) => explainRewrite(path, body, createModelNames(catalog)),
      backendStates: async () =>
        backends.map(({ name }) =>
          Object.assign({ name, state: "in" as const, since: 0, inFlight: 0, waiting: 0 }, states.get(name)),
        ),
    }),
  );
  const visitor = shared(() => withFile.login());

  const goesTo = async (model: string) => {
    const json = { path: "/v1/chat/completions", body: JSON.stringify({ model, messages: [] }) };
    const { json: body } = await withFile.send("POST", "/api/explain", { as: visitor, json });
    return body;
  };

  test.each([
    ["the one with the fewest requests", { "gpu-a": { inFlight: 3 } }, { backend: "gpu-b", reason: "load" }],
    ["the other if one is out", { "gpu-b": { state: "out" } }, { backend: "gpu-a", reason: "load" }],
    [
      "the one that spills if the others drain",
      { "gpu-a": { state: "draining" }, "gpu-b": { state: "draining" } },
      { backend: "attic", reason: "spill" },
    ],
    [
      "none while all drain",
      { "gpu-a": { state: "draining" }, "gpu-b": { state: "draining" }, attic: { state: "draining" } },
      null,
    ],
  ] as const)("it names the model, the candidates, and where the request would go: %s", async (_, given, expected) => {
    states.clear();
    for (const [name, status] of Object.entries(given)) states.set(name, status);
    const body = await goesTo("chat");
    expect(body).toMatchObject({ refused: null, model: { asked: "chat", sent: "org/chat", name: "chat" } });
    expect(body.candidates.map(({ name }: { name: string }) => name)).toEqual(["gpu-a", "gpu-b", "attic"]);
    expect(body.goes_to).toEqual(expected);
  });

  test("a model with one backend goes there, and one that nobody has is refused", async () => {
    states.clear();
    expect((await goesTo("embed")).goes_to).toEqual({ backend: "attic", reason: "only" });
    expect(await goesTo("unknown")).toMatchObject({ refused: "model_not_found", candidates: [], goes_to: null });
  });
});
