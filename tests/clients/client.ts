import type { ClientValues } from "../../console/src/start/quick-start-lines.ts";
import versions from "./versions.json" with { type: "json" };

/** Of the key whose users Open WebUI signs. */
export const usersSecret = "0123456789abcdef0123456789abcdef";

export type ClientKind = "further" | "sdk";

/** A client, as Help sets it up. */
export interface RealClient {
  /** Of Help's settings, and of the installed package. */
  id: keyof typeof versions;
  label: string;
  /** Below the home folder: where Help's text says that the file belongs. Unset: the text is for the shell that starts it. */
  file?: string;
  /** Where Help has nothing but the address, the key and the model: what its documentation makes of them. */
  settings?: (values: ClientValues) => string;
  /** Below the folder of the installed clients. */
  binary: string;
  /** It asks for the list of models first. */
  listsModels?: true;
  /** It asks for a title at the same time. */
  asksForTitle?: true;
  /** It is a server, which `ask-server.ts` starts and asks. */
  isServer?: true;
  /** Asks for one answer and exits. */
  ask: (prompt: string) => string[];
  /** The same in the conversation before; only of those whose conversations are recorded. */
  goOn?: (prompt: string) => string[];
  /** Arguments that show the conversation before on its screen, and what that has once it hears what is typed. */
  screen?: { goOn: readonly string[]; ready: string };
  /** Unset: it meets everything; those meet what is for their kind, so that a night is long enough for all. */
  kind?: ClientKind;
  /** What a user sets beside the file. */
  environment?: (key: string) => Readonly<Record<string, string>>;
  /** Hosts that it asks directly, whatever proxy is set. */
  unseenHosts?: readonly string[];
}

const agents: readonly RealClient[] = [
  {
    id: "claude-code",
    label: "Claude Code",
    file: ".claude/settings.json",
    binary: "node_modules/claude-code/claude",
    listsModels: true,
    ask: (prompt) => ["-p", prompt],
    goOn: (prompt) => ["-p", "--continue", prompt],
  },
  {
    id: "codex",
    label: "Codex",
    file: ".codex/config.toml",
    binary: `node_modules/codex/vendor/${process.arch === "arm64" ? "aarch64" : "x86_64"}-unknown-linux-musl/bin/codex`,
    ask: (prompt) => ["exec", "--skip-git-repo-check", prompt],
    goOn: (prompt) => ["exec", "resume", "--last", "--skip-git-repo-check", prompt],
    screen: { goOn: ["resume", "--last", "--include-non-interactive"], ready: "local default" },
    environment: (key) => ({ TOLLGATE_API_KEY: key }),
  },
  {
    id: "opencode",
    label: "opencode",
    file: ".config/opencode/opencode.json",
    binary: "node_modules/opencode/bin/opencode",
    asksForTitle: true,
    ask: (prompt) => ["run", prompt],
    goOn: (prompt) => ["run", "--continue", prompt],
    // Its list of models, which no setting of the file turns off; and it waits for packages that it cannot get.
    environment: () => ({ OPENCODE_DISABLE_MODELS_FETCH: "1", npm_config_fetch_retries: "0" }),
  },
  {
    id: "aider",
    label: "aider",
    file: ".aider.conf.yml",
    binary: "aider/bin/aider",
    ask: (prompt) => ["--no-git", "--yes-always", "--message", prompt],
    // It breaks lines there.
    environment: () => ({ COLUMNS: "400" }),
  },
  {
    id: "continue",
    label: "Continue",
    file: ".continue/config.yaml",
    binary: "node_modules/@continuedev/cli/dist/cn.js",
    ask: (prompt) => ["-p", prompt],
    // For its newest version.
    unseenHosts: ["api.continue.dev"],
  },
];

const furtherAgents: readonly RealClient[] = [
  {
    id: "copilot-cli",
    label: "Copilot CLI",
    binary: "node_modules/copilot/copilot",
    ask: (prompt) => ["-p", prompt],
  },
  { id: "cline", label: "Cline", binary: "node_modules/cline/bin/cline", ask: (prompt) => [prompt] },
  {
    id: "qwen-code",
    label: "Qwen Code",
    file: ".qwen/settings.json",
    binary: "node_modules/@qwen-code/qwen-code/cli-entry.js",
    ask: (prompt) => [prompt],
  },
  {
    id: "kimi",
    label: "Kimi Code",
    settings: ({ origin, key, model, contextTokens, outputTokens }) => `KIMI_MODEL_PROVIDER_TYPE=openai
KIMI_MODEL_BASE_URL=${origin}/v1
KIMI_MODEL_API_KEY=${key}
KIMI_MODEL_NAME=${model}
KIMI_MODEL_MAX_CONTEXT_SIZE=${contextTokens}
KIMI_MODEL_MAX_OUTPUT_SIZE=${outputTokens}`,
    binary: "node_modules/@moonshot-ai/kimi-code/dist/main.mjs",
    ask: (prompt) => ["-p", prompt],
    environment: () => ({ KIMI_CODE_NO_AUTO_UPDATE: "1" }),
  },
  {
    id: "vibe",
    label: "Mistral Vibe",
    file: ".vibe/config.toml",
    settings: ({ origin, model }) => `active_model = "local"

[[providers]]
name = "tollgate"
api_base = "${origin}/v1"
api_key_env_var = "TOLLGATE_API_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "${model}"
provider = "tollgate"
alias = "local"`,
    binary: "vibe/bin/vibe",
    ask: (prompt) => ["-p", prompt],
    environment: (key) => ({ TOLLGATE_API_KEY: key }),
  },
  {
    id: "litellm",
    label: "LiteLLM",
    file: "config.yaml",
    binary: "litellm/bin/litellm",
    isServer: true,
    listsModels: true,
    ask: (prompt) => [prompt],
  },
  {
    id: "open-webui",
    label: "Open WebUI",
    binary: "open-webui/bin/open-webui",
    isServer: true,
    listsModels: true,
    ask: (prompt) => [prompt],
    // The two lines that the dialog of a key shows.
    environment: () => ({
      ENABLE_FORWARD_USER_INFO_HEADERS: "true",
      FORWARD_USER_INFO_HEADER_JWT_SECRET: usersSecret,
    }),
  },
  {
    id: "gptme",
    label: "gptme",
    settings: ({ origin, key, model }) => `OPENAI_BASE_URL=${origin}/v1
OPENAI_API_KEY=${key}
MODEL=local/${model}`,
    binary: "gptme/bin/gptme",
    ask: (prompt) => ["--non-interactive", prompt],
    // It breaks lines there.
    environment: () => ({ COLUMNS: "400" }),
  },
];

const sdks: readonly RealClient[] = [
  {
    id: "openai-python",
    label: "OpenAI’s SDK for Python",
    file: "ask.py",
    binary: "sdks/bin/python",
    ask: () => ["../ask.py"],
  },
  {
    id: "openai-node",
    label: "OpenAI’s SDK for Node",
    file: "ask.mjs",
    binary: "node_modules/node/bin/node",
    ask: () => ["../ask.mjs"],
  },
  {
    id: "anthropic-python",
    label: "Anthropic’s SDK for Python",
    file: "ask.py",
    binary: "sdks/bin/python",
    ask: () => ["../ask.py"],
  },
  {
    id: "anthropic-node",
    label: "Anthropic’s SDK for Node",
    file: "ask.mjs",
    binary: "node_modules/node/bin/node",
    ask: () => ["../ask.mjs"],
  },
];

export const realClients: readonly RealClient[] = [
  ...agents,
  ...furtherAgents.map((client) => Object.assign(client, { kind: "further" as const })),
  ...sdks.map((client) => Object.assign(client, { kind: "sdk" as const })),
];

export const versionOf = ({ id }: RealClient): string => versions[id];
