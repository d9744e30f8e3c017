import { beforeAll, expect, test } from "bun:test";
import { shared } from "../../support/shared.ts";
import { backendOf, fileCatalog, modelOf } from "../../support/catalog.ts";
import { addRequests, requestRow } from "../../store/logged-requests.ts";
import { chooseClientRules } from "../../../src/proxy/rewrite/client-rules.ts";
import { startAdmin } from "../support/admin-server.ts";

const anew = { inputTokens: 1000, outputTokens: 10, cachedInputTokens: 250 };
const cached = { inputTokens: 100, outputTokens: 10, cachedInputTokens: 900 };
const admin = shared(() =>
  startAdmin({
    catalog: () =>
      fileCatalog(
        [backendOf("one"), backendOf("two"), backendOf("silent")],
        [
          modelOf("plain", ["one"]),
          modelOf("automatic", ["one"], { clientRules: "auto" }),
          modelOf("partly", ["one"], { clientRules: ["drop_billing_line"] }),
        ],
      ),
    // Of the backend `two` nothing is known; the others are vLLM.
    learnClientNeeds: async () => (userAgent, backends) => {
      const engines = backends.includes("two") ? [] : (["vllm"] as const);
      return { engines, rules: [...chooseClientRules("auto", { userAgent, enginesOf: () => engines }, backends)] };
    },
  }),
);
const owner = shared(() => admin.login());
beforeAll(async () => {
  const { now } = admin.time;
  const claude = { clientProgram: "claude-cli/2.1.332", path: "/v1/messages", backend: "one", modelSent: "plain" };
  const dropped = { kinds: ["drop_billing_line"] as const, maxTokens: undefined };
  const rows = [
    requestRow(now - 9000, claude, anew),
    requestRow(now - 8900, { ...claude, cacheLoss: "system_changed" }, anew),
    // Most of it came from the cache: no rule would have helped.
    requestRow(now - 8800, claude, cached),
    // It is known why, and that is not what rules mend.
    requestRow(now - 8700, { ...claude, cacheLoss: "elsewhere" }, anew),
    requestRow(now - 8600, { ...claude, cacheLoss: "tools_changed" }, anew),
    requestRow(now - 8500, { ...claude, status: 400 }),
    // What a rule mended does not count for it.
    requestRow(now - 8400, { ...claude, cacheLoss: "system_changed", changes: dropped }, anew),
    requestRow(now - 8300, { ...claude, modelSent: "automatic" }, anew),
    requestRow(now - 8200, { ...claude, clientProgram: "claude-cli/2.1.331", modelSent: "partly" }, anew),
    requestRow(now - 8100, { ...claude, backend: "two" }, anew),
    requestRow(now - 8000, { ...claude, backend: "silent" }, { inputTokens: 500, outputTokens: 1 }),
    requestRow(now - 7900, { ...claude, clientProgram: "codex_exec/0.169.0", path: "/v1/responses" }, anew),
    // A list of models has no tokens.
    requestRow(now - 3000, { ...claude, path: "/v1/models", modelSent: undefined }),
    requestRow(now - 2000, { backend: "one", keyId: 7 }, anew),
    requestRow(now - 25 * 3_600_000, claude, anew),
  ];
  await addRequests(admin.store, ...rows);
});

const get = async (query = "") => (await admin.send("GET", `/api/client-rules${query}`, { as: owner })).json;

test("only requests that were read anew for want of a rule, or refused, count as those that it would have helped", async () => {
  const { rows, complete } = await get();
  expect(complete).toBe(true);
  const common = { backend: "one", engines: ["vllm"] };
  expect(rows).toEqual([
    {
      ...common,
      client: "claude-cli/2.1.332",
      rules: ["drop_billing_line", "system_turns_to_user"],
      request_count: 7,
      refused_count: 1,
      read_anew_count: 2,
      read_anew_tokens: 2000,
    },
    {
      ...common,
      client: "claude-cli/2.1.331",
      rules: ["system_turns_to_user"],
      request_count: 1,
      refused_count: 0,
      read_anew_count: 1,
      read_anew_tokens: 1000,
    },
    {
      ...common,
      client: "claude-cli/2.1.332",
      backend: "silent",
      rules: ["drop_billing_line", "system_turns_to_user"],
      request_count: 1,
      refused_count: 0,
      read_anew_count: 1,
      read_anew_tokens: null,
    },
  ]);
});

test("those of more hours", async () => {
  expect((await get("?hours=48")).rows[0]).toMatchObject({ request_count: 8, read_anew_tokens: 3000 });
  expect((await admin.send("GET", "/api/client-rules?hours=0", { as: owner })).status).toBe(400);
});
