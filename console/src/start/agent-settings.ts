// Every client that Help knows, one row each: its name, where its file lies, and the text. Help and the handbook are made
// of it. `tests/clients` runs those of its versions.json with the text as it stands.

import { type Client, type ClientValues, quoted, sdkLines, shell } from "./quick-start-lines.ts";

const rows = (values: ClientValues): Omit<Client, "id">[] => [
  ...sdkLines(values),
  ...agents(values).map((agent) => Object.assign(agent, { isAgent: true })),
  {
    label: "Open WebUI",
    note: "In its environment before the first start; later in Admin Panel, Settings, Connections and Interface.",
    text: openWebUi(values),
  },
  {
    label: "LiteLLM",
    note:
      "In front of Tollgate, in config.yaml; then set LITELLM_MASTER_KEY and start litellm --config config.yaml. " +
      "All that it sends counts for this one key.",
    file: "config.yaml",
    text: liteLlm(values),
  },
  {
    label: "Others",
    note: "Zed, LibreChat, n8n, LangChain and more: wherever they ask for a provider that is compatible with OpenAI.",
    text: inWords(values),
  },
];

/** @returns each with its id, which is its label in small letters */
export const clients = (values: ClientValues): Client[] =>
  rows(values).map((row) => Object.assign(row, { id: row.label.toLowerCase().replaceAll(/[^a-z\d]+/g, "-") }));

/** The clients of most people, for the text that hands a key over. */
const handedOver: ReadonlySet<string> = new Set(["claude-code", "codex", "openai-python"]);

/** All that a colleague needs to use a key. @param ownPage where its holder sees limits and usage */
export const handOverText = (values: ClientValues, ownPage: string): string =>
  [
    inWords(values),
    `Limits and usage: ${ownPage}`,
    ...clients(values)
      .filter(({ id }) => handedOver.has(id))
      .map(({ label, note, text }) => `--- ${label} ---\n${note}\n\n${text}`),
  ].join("\n\n");

const agents = (values: ClientValues): Omit<Client, "id">[] => [
  {
    label: "Claude Code",
    note:
      "In ~/.claude/settings.json, or .claude/settings.local.json of a project. " +
      "Aliases with claude or anthropic in their name appear in /model.",
    file: "settings.json",
    text: claudeCode(values),
  },
  {
    label: "Codex",
    note: "In ~/.codex/config.toml; then set TOLLGATE_API_KEY to the key and start codex.",
    file: "config.toml",
    text: codex(values),
  },
  {
    label: "opencode",
    note: "In ~/.config/opencode/opencode.json, or opencode.json of a project.",
    file: "opencode.json",
    text: openCode(values),
  },
  // After the documentation of 14 October 2026; VS Code 1.122 and later.
  {
    label: "VS Code",
    note:
      "In chatLanguageModels.json of Copilot Chat: run Chat: Manage Language Models, add a Custom Endpoint, and replace what opens. " +
      "No GitHub account is needed.",
    file: "chatLanguageModels.json",
    text: vsCode(values),
  },
  {
    label: "Copilot CLI",
    note: "In the shell that starts copilot. Without COPILOT_OFFLINE it also uses GitHub’s services.",
    text: copilotCli(values),
  },
  {
    label: "Cline",
    note:
      "In a shell for the CLI; in VS Code, choose OpenAI Compatible and enter the same, " +
      `with a context window of ${values.contextTokens} tokens.`,
    text: cline(values),
  },
  {
    label: "Qwen Code",
    note: "In ~/.qwen/settings.json, or .qwen/settings.json of a project.",
    file: "settings.json",
    text: qwenCode(values),
  },
  { label: "aider", note: "In ~/.aider.conf.yml.", file: "aider.conf.yml", text: aider(values) },
  {
    label: "Continue",
    note: "In ~/.continue/config.yaml.",
    file: "config.yaml",
    text: continueDev(values),
  },
  {
    label: "Cursor",
    note: "In Settings, Models. Cursor’s own servers send the requests: they must reach this address over the internet.",
    text: inWords(values),
  },
];

/** For clients that ask for it in forms of their own. */
const inWords = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string => `Base URL: ${origin}/v1
API key: ${key}
Model: ${model}
Context: ${contextTokens} tokens, of which at most ${outputTokens} are output`;

const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** Claude Code asks for a model of each size, whatever is chosen. */
const claudeCodeModels = [
  "ANTHROPIC_MODEL",
  "ANTHROPIC_DEFAULT_HAIKU_MODEL",
  "ANTHROPIC_DEFAULT_SONNET_MODEL",
  "ANTHROPIC_DEFAULT_OPUS_MODEL",
  "ANTHROPIC_DEFAULT_FABLE_MODEL",
  "CLAUDE_CODE_SUBAGENT_MODEL",
];

/**
 * Without the billing line and the tool search, which change the prompt's beginning and cost the backend its cache; with the
 * headers that say what a request is for, and the server's list of models.
 */
const claudeCode = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string =>
  json({
    env: {
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_AUTH_TOKEN: key,
      ...Object.fromEntries(claudeCodeModels.map((name) => [name, model])),
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextTokens),
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(outputTokens),
      CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
      CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "1",
      CLAUDE_CODE_GATEWAY_HINT_HEADERS: "1",
      ENABLE_TOOL_SEARCH: "false",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
    // The safety check of the mode auto is a service of Anthropic.
    permissions: { defaultMode: "default" },
  });

/**
 * Without the tools that are not functions, which open models' servers refuse, and without what Codex tells OpenAI or fetches
 * from there and from GitHub.
 */
const codex = ({ origin, model, contextTokens }: ClientValues): string => `model = ${quoted(model)}
model_provider = "tollgate"
model_context_window = ${contextTokens}
web_search = "disabled"

[agents]
enabled = false

[analytics]
enabled = false

[features]
plugins = false

[notice]
hide_rate_limit_model_nudge = true

[model_providers.tollgate]
name = "Tollgate"
base_url = ${quoted(`${origin}/v1`)}
env_key = "TOLLGATE_API_KEY"
wire_api = "responses"`;

const openCode = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string =>
  json({
    $schema: "https://opencode.ai/config.json",
    model: `tollgate/${model}`,
    provider: {
      tollgate: {
        npm: "@ai-sdk/openai-compatible",
        name: "Tollgate",
        options: { baseURL: `${origin}/v1`, apiKey: key },
        models: { [model]: { name: model, limit: { context: contextTokens, output: outputTokens } } },
      },
    },
  });

/** Without what aider tells its makers, asks PyPI, and warns of since it knows nothing of the model. */
const aider = ({ origin, key, model }: ClientValues): string => `openai-api-base: ${quoted(`${origin}/v1`)}
openai-api-key: ${quoted(key)}
model: ${quoted(`openai/${model}`)}
analytics-disable: true
check-update: false
show-model-warnings: false`;

const continueDev = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string => `name: Tollgate
version: 1.0.0
schema: v1
models:
  - name: ${quoted(model)}
    provider: openai
    model: ${quoted(model)}
    apiBase: ${quoted(`${origin}/v1`)}
    apiKey: ${quoted(key)}
    roles: [chat, edit, apply]
    defaultCompletionOptions:
      contextLength: ${contextTokens}
      maxTokens: ${outputTokens}`;

/** It takes the messages alone for its prompt: the output comes on top. */
const promptTokens = ({ contextTokens, outputTokens }: ClientValues): number | string =>
  typeof contextTokens === "number" ? Math.max(1, contextTokens - outputTokens) : contextTokens;

const copilotCli = (values: ClientValues): string => `export COPILOT_PROVIDER_BASE_URL=${shell(`${values.origin}/v1`)}
export COPILOT_PROVIDER_API_KEY=${shell(values.key)}
export COPILOT_MODEL=${shell(values.model)}
export COPILOT_PROVIDER_MAX_PROMPT_TOKENS=${promptTokens(values)}
export COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=${values.outputTokens}
export COPILOT_OFFLINE=true`;

const vsCode = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string => {
  const caps = { toolCalling: true, vision: false, contextWindow: contextTokens, maxOutputTokens: outputTokens };
  const models = [{ id: model, name: model, url: `${origin}/v1/chat/completions`, ...caps }];
  return json([{ name: "Tollgate", vendor: "customendpoint", apiKey: key, apiType: "chat-completions", models }]);
};

const cline = ({ origin, key, model }: ClientValues): string =>
  `cline auth -p openai-compatible -b ${shell(`${origin}/v1`)} -k ${shell(key)} -m ${shell(model)}`;

const qwenCode = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string => {
  const generationConfig = { contextWindowSize: contextTokens, samplingParams: { max_tokens: outputTokens } };
  const served = { id: model, name: model, baseUrl: `${origin}/v1`, envKey: "TOLLGATE_API_KEY", generationConfig };
  return json({
    env: { TOLLGATE_API_KEY: key },
    modelProviders: { openai: [served] },
    security: { auth: { selectedType: "openai" } },
    model: { name: model },
    privacy: { usageStatisticsEnabled: false },
  });
};

/** The headers tell Tollgate which requests belong to one chat. */
const openWebUi = ({ origin, key, model }: ClientValues): string => `ENABLE_OLLAMA_API=false
OPENAI_API_BASE_URL=${origin}/v1
OPENAI_API_KEY=${key}
TASK_MODEL_EXTERNAL=${model}
ENABLE_FORWARD_USER_INFO_HEADERS=true`;

const liteLlm = ({ origin, key, model, contextTokens, outputTokens }: ClientValues): string => `model_list:
  - model_name: ${quoted(model)}
    litellm_params:
      model: ${quoted(`openai/${model}`)}
      api_base: ${quoted(`${origin}/v1`)}
      api_key: ${quoted(key)}
    model_info:
      max_input_tokens: ${contextTokens}
      max_output_tokens: ${outputTokens}`;
