import { afterAll, beforeAll, expect, test } from "bun:test";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { requestRow, requestsOf } from "../../store/logged-requests.ts";
import { chooseClientRules } from "../../../src/proxy/rewrite/client-rules.ts";
import { type Admin, startAdmin, type Visitor } from "../support/admin-server.ts";

let admin: Admin;
let owner: Required<Visitor>;
let now: number;
const tokens = { inputTokens: 1000, outputTokens: 10, cachedInputTokens: 250 };
beforeAll(async () => {
  admin = await startAdmin({
    catalog: () =>
      fileCatalog(
        [backendOf("one"), backendOf("two")],
        [
          modelOf("plain", ["one"]),
          modelOf("automatic", ["one"], { clientRules: "auto" }),
          modelOf("partly", ["one"], { clientRules: ["drop_billing_line"] }),
        ],
      ),
    // The backend `one` is vLLM, and of `two` nothing is known.
    learnClientNeeds: async () => (userAgent, backends) => {
      const engines = backends.includes("one") ? (["vllm"] as const) : [];
      return { engines, rules: [...chooseClientRules("auto", { userAgent, enginesOf: () => engines }, backends)] };
    },
  });
  owner = await admin.login();
  now = admin.time.now;
  const claude = { clientProgram: "claude-cli/2.1.332", path: "/v1/messages", backend: "one", modelSent: "plain" };
  const rows = [
    requestRow(now - 9000, { ...claude, requestClass: "main" }, tokens),
    requestRow(now - 8000, { ...claude, requestClass: "compaction" }, { ...tokens, inputTokens: 3500 }),
    requestRow(now - 7000, { ...claude, requestClass: "main", status: 400 }),
    requestRow(now - 6000, { ...claude, modelSent: "automatic" }, tokens),
    requestRow(now - 5000, { ...claude, modelSent: "partly" }, tokens),
    requestRow(now - 4000, { ...claude, backend: "two" }, tokens),
    // A list of models has no tokens.
    requestRow(now - 3000, { ...claude, path: "/v1/models", modelSent: undefined }),
    requestRow(now - 2000, { backend: "one", keyId: 7 }, tokens),
    requestRow(now - 25 * 3_600_000, claude, tokens),
  ];
  await admin.store.usage.add([], undefined, [], requestsOf(...rows));
});
afterAll(() => admin.stop());

const get = async (query = "") => (await admin.send("GET", `/api/usage/clients${query}`, { as: owner })).json;

test("requests and tokens are listed by client and class, whole prompts with what came from a cache", async () => {
  const body = await get();
  expect(body).toMatchObject({ hours: 24, complete: true, request_count: 8 });
  const claude = { client: "claude-cli/2.1.332" };
  expect(body.rows).toMatchObject([
    { ...claude, class: null, request_count: 4, prompt_tokens: 3750, from_cache_tokens: 750 },
    { ...claude, class: "compaction", request_count: 1, prompt_tokens: 3750 },
    { ...claude, class: "main", request_count: 2, prompt_tokens: 1250 },
    { client: "OpenAI/Python", class: null, request_count: 1, prompt_tokens: 1000, from_cache_tokens: 250 },
  ]);
  expect(body.prompt_tokens).toBe(9750);
});

test("those of one key, and of more hours", async () => {
  expect((await get("?key_id=7")).rows).toMatchObject([{ client: "OpenAI/Python", request_count: 1 }]);
  expect((await get("?hours=48")).request_count).toBe(9);
  expect((await admin.send("GET", "/api/usage/clients?hours=0", { as: owner })).status).toBe(400);
});

test("advice has the rules that a client needs in front of the engine and that its model has not", async () => {
  const common = { client: "claude-cli/2.1.332", backend: "one", engines: ["vllm"] };
  expect((await get()).advice).toEqual([
    {
      ...common,
      rules: ["drop_billing_line", "system_turns_to_user"],
      request_count: 3,
      refused_count: 1,
      read_again_tokens: 4500,
    },
    { ...common, rules: ["system_turns_to_user"], request_count: 1, refused_count: 0, read_again_tokens: 1000 },
  ]);
});
