import { describe, expect, test } from "bun:test";
import type { ClientValues } from "../../../console/src/start/quick-start-lines.ts";
import { clients } from "../../../console/src/start/agent-settings.ts";

const values: ClientValues = {
  origin: "https://llm.example.com",
  key: "k-123",
  model: "served-model",
  contextTokens: 131_072,
  outputTokens: 8192,
};
const textOf = (id: string, changed: Partial<ClientValues> = {}): string =>
  clients({ ...values, ...changed }).find((lines) => lines.id === id)?.text ?? "";

describe("the lines of the quick start", () => {
  test.each(clients(values).map(({ id }) => [id]))("for %s name the server and the model", (id) => {
    expect(textOf(id)).toContain(values.origin);
    expect(textOf(id)).toContain(values.model);
  });

  test("have each client once", () => {
    const ids = clients(values).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("give the Anthropic clients the address without /v1, which they add", () => {
    for (const id of ["anthropic-python", "anthropic-node", "claude-code"]) expect(textOf(id)).not.toContain("/v1");
  });

  test.each(["a'b", 'a"b', "a$(b)`c`", String.raw`a\b`])("quote the key %s for a shell", async (key) => {
    const command = textOf("curl", { key }).replace(/^curl -N/, "printf '%s\\n'");
    const shell = Bun.spawn(["sh", "-c", command]);
    expect(await new Response(shell.stdout).text()).toContain(`Authorization: Bearer ${key}\n`);
  });

  test("are the whole settings of Claude Code, with every model that it asks for, the caps, and what spares the cache", () => {
    const { env, permissions } = JSON.parse(textOf("claude-code", { key: 'a"b' })) as Record<string, object>;
    expect(env).toEqual({
      ANTHROPIC_BASE_URL: values.origin,
      ANTHROPIC_AUTH_TOKEN: 'a"b',
      ANTHROPIC_MODEL: values.model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: values.model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: values.model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: values.model,
      ANTHROPIC_DEFAULT_FABLE_MODEL: values.model,
      CLAUDE_CODE_SUBAGENT_MODEL: values.model,
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: "131072",
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: "8192",
      CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
      CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: "1",
      ENABLE_TOOL_SEARCH: "false",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    });
    expect(permissions).toEqual({ defaultMode: "default" });
  });

  test("of Codex are TOML, without the tools that open models' servers refuse", () => {
    expect(Bun.TOML.parse(textOf("codex", { model: 'a"b' }))).toEqual({
      model: 'a"b',
      model_provider: "tollgate",
      model_context_window: 131_072,
      web_search: "disabled",
      agents: { enabled: false },
      analytics: { enabled: false },
      features: { plugins: false },
      notice: { hide_rate_limit_model_nudge: true },
      model_providers: {
        tollgate: {
          name: "Tollgate",
          base_url: `${values.origin}/v1`,
          env_key: "TOLLGATE_API_KEY",
          wire_api: "responses",
        },
      },
    });
  });

  test("of opencode give the model its caps", () => {
    const settings = JSON.parse(textOf("opencode")) as { provider: { tollgate: { models: object } } };
    expect(settings.provider.tollgate.models).toEqual({
      "served-model": { name: "served-model", limit: { context: 131_072, output: 8192 } },
    });
  });

  test.each(clients(values).map(({ id }) => [id]))("of %s have no other context than the model's", (id) => {
    expect(textOf(id)).not.toContain("202752");
    expect(textOf(id, { contextTokens: "CONTEXT" })).not.toContain("131072");
  });

  test.each(["claude-code", "codex", "opencode", "vs-code", "qwen-code", "continue", "litellm", "others"])(
    "of %s name the context",
    (id) => {
      expect(textOf(id)).toContain("131072");
      expect(textOf(id, { contextTokens: "CONTEXT" })).toContain("CONTEXT");
    },
  );

  test("of Copilot's CLI are a shell's, with the context less the output for the prompt", async () => {
    const text = textOf("copilot-cli", { key: "a'b" });
    const shell = Bun.spawn(["sh", "-c", `${text}\nenv`], { env: { PATH: process.env["PATH"] ?? "" } });
    const lines = (await new Response(shell.stdout).text()).split("\n").filter((line) => line.startsWith("COPILOT_"));
    expect(lines.toSorted()).toEqual([
      "COPILOT_MODEL=served-model",
      "COPILOT_OFFLINE=true",
      "COPILOT_PROVIDER_API_KEY=a'b",
      `COPILOT_PROVIDER_BASE_URL=${values.origin}/v1`,
      "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=8192",
      "COPILOT_PROVIDER_MAX_PROMPT_TOKENS=122880",
    ]);
    expect(textOf("copilot-cli", { contextTokens: "CONTEXT" })).toContain("MAX_PROMPT_TOKENS=CONTEXT");
  });

  test("of VS Code are a custom endpoint with the model and its context", () => {
    expect(JSON.parse(textOf("vs-code"))).toEqual([
      {
        name: "Tollgate",
        vendor: "customendpoint",
        apiKey: values.key,
        apiType: "chat-completions",
        models: [
          {
            id: "served-model",
            name: "served-model",
            url: `${values.origin}/v1/chat/completions`,
            toolCalling: true,
            vision: false,
            contextWindow: 131_072,
            maxOutputTokens: 8192,
          },
        ],
      },
    ]);
  });

  test("of Qwen Code name the variable of the key, and the context", () => {
    expect(JSON.parse(textOf("qwen-code"))).toMatchObject({
      env: { TOLLGATE_API_KEY: values.key },
      modelProviders: {
        openai: [
          {
            id: "served-model",
            baseUrl: `${values.origin}/v1`,
            envKey: "TOLLGATE_API_KEY",
            generationConfig: { contextWindowSize: 131_072, samplingParams: { max_tokens: 8192 } },
          },
        ],
      },
      model: { name: "served-model" },
    });
  });

  test.each(["aider", "continue", "litellm"])("of %s are YAML with the key", (id) => {
    expect(JSON.stringify(Bun.YAML.parse(textOf(id, { key: "a: 'b'" })))).toContain(`"a: 'b'"`);
  });

  test("are a file of their own for each agent that has one", () => {
    const files = clients(values).flatMap(({ id, file, isAgent }) => (isAgent === true ? [[id, file]] : []));
    expect(files).toEqual([
      ["claude-code", "settings.json"],
      ["codex", "config.toml"],
      ["opencode", "opencode.json"],
      ["vs-code", "chatLanguageModels.json"],
      ["copilot-cli", undefined],
      ["cline", undefined],
      ["qwen-code", "settings.json"],
      ["aider", "aider.conf.yml"],
      ["continue", "config.yaml"],
      ["cursor", undefined],
    ]);
  });

  test("quote the key for JavaScript", () => {
    expect(textOf("openai-node", { key: 'a"b' })).toContain(String.raw`apiKey: "a\"b"`);
  });
});
