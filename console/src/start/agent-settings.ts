export interface QuickStart {
  id: string;
  label: string;
  /** The file or program for the lines, and their preconditions. */
  note: string;
  text: string;
  /** A coding agent, whose requests run for minutes. */
  isAgent?: boolean;
  /** The name of the file that the text is. */
  file?: string;
}

export interface QuickStartValues {
  /** Where `/v1` is, such as `https://llm.example.com`. */
  origin: string;
  key: string;
  model: string;
  /** The caps, in tokens. */
  contextTokens: number;
  outputTokens: number;
}

/** The whole settings of coding agents, each as a file of its own. */
export function agentSettings(values: QuickStartValues): QuickStart[] {
  const listed = "Aliases with claude or anthropic in their name appear in /model.";
  return [
    {
      id: "claude-code",
      label: "Claude Code",
      note: `In ~/.claude/settings.json, or .claude/settings.local.json of a project. ${listed}`,
      file: "settings.json",
      text: claudeCode(values),
    },
    {
      id: "codex",
      label: "Codex",
      note: "In ~/.codex/config.toml; then set TOLLGATE_API_KEY to the key and start codex.",
      file: "config.toml",
      text: codex(values),
    },
    {
      id: "opencode",
      label: "opencode",
      note: "In ~/.config/opencode/opencode.json, or opencode.json of a project.",
      file: "opencode.json",
      text: openCode(values),
    },
    { id: "aider", label: "aider", note: "In ~/.aider.conf.yml.", file: "aider.conf.yml", text: aider(values) },
    {
      id: "continue",
      label: "Continue",
      note: "In ~/.continue/config.yaml.",
      file: "config.yaml",
      text: continueDev(values),
    },
  ].map((agent) => Object.assign(agent, { isAgent: true }));
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);
/** Quotes a text for TOML and YAML, whose strings share JSON's escapes. */
const quoted = (text: string): string => JSON.stringify(text);

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
const claudeCode = ({ origin, key, model, contextTokens, outputTokens }: QuickStartValues): string =>
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
const codex = ({ origin, model, contextTokens }: QuickStartValues): string => `model = ${quoted(model)}
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

const openCode = ({ origin, key, model, contextTokens, outputTokens }: QuickStartValues): string =>
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
const aider = ({ origin, key, model }: QuickStartValues): string => `openai-api-base: ${quoted(`${origin}/v1`)}
openai-api-key: ${quoted(key)}
model: ${quoted(`openai/${model}`)}
analytics-disable: true
check-update: false
show-model-warnings: false`;

const continueDev = ({ origin, key, model, contextTokens, outputTokens }: QuickStartValues): string => `name: Tollgate
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
