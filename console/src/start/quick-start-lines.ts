/** How one client is connected: a row of the table in `agent-settings.ts`. */
export interface Client {
  id: string;
  label: string;
  /** The file or program for the text, and its preconditions. */
  note: string;
  text: string;
  /** A coding agent, whose requests run for minutes. */
  isAgent?: boolean;
  /** The name of the file that the text is. */
  file?: string;
}

export interface ClientValues {
  /** Where `/v1` is, such as `https://llm.example.com`. */
  origin: string;
  key: string;
  model: string;
  /** The model's caps, in tokens; a word to replace while it is not known. */
  contextTokens: number | "CONTEXT";
  outputTokens: number;
}

/** Lines that send a request. */
export const sdkLines = (values: ClientValues): Omit<Client, "id">[] => [
  { label: "curl", note: "In a shell; streams a chat.", text: curl(values) },
  { label: "OpenAI, Python", note: "After pip install openai.", text: openAiPython(values) },
  { label: "OpenAI, Node", note: "After npm install openai.", text: openAiNode(values) },
  { label: "Anthropic, Python", note: "After pip install anthropic.", text: anthropicPython(values) },
  { label: "Anthropic, Node", note: "After npm install @anthropic-ai/sdk.", text: anthropicNode(values) },
];

/** Quotes a text for a shell: everything but the quote itself is literal in single quotes. */
export const shell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
/** Quotes a text for Python, JavaScript, TOML and YAML, whose strings share JSON's escapes. */
export const quoted = (text: string): string => JSON.stringify(text);

function curl({ origin, key, model }: ClientValues): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello!" }] });
  return `curl -N ${shell(`${origin}/v1/chat/completions`)} \\
  -H ${shell(`Authorization: Bearer ${key}`)} \\
  -H 'Content-Type: application/json' \\
  -d ${shell(body)}`;
}

const openAiPython = ({ origin, key, model }: ClientValues): string => `from openai import OpenAI

client = OpenAI(base_url=${quoted(`${origin}/v1`)}, api_key=${quoted(key)})
stream = client.chat.completions.create(
    model=${quoted(model)},
    messages=[{"role": "user", "content": "Hello!"}],
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)`;

const openAiNode = ({ origin, key, model }: ClientValues): string => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${quoted(`${origin}/v1`)}, apiKey: ${quoted(key)} });
const stream = await client.chat.completions.create({
  model: ${quoted(model)},
  messages: [{ role: "user", content: "Hello!" }],
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`;

const anthropicPython = ({ origin, key, model }: ClientValues): string => `from anthropic import Anthropic

client = Anthropic(base_url=${quoted(origin)}, api_key=${quoted(key)})
with client.messages.stream(
    model=${quoted(model)},
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello!"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`;

const anthropicNode = ({ origin, key, model }: ClientValues): string => `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: ${quoted(origin)}, apiKey: ${quoted(key)} });
const stream = client.messages.stream({
  model: ${quoted(model)},
  max_tokens: 1024,
  messages: [{ role: "user", content: "Hello!" }],
});
stream.on("text", (text) => process.stdout.write(text));
await stream.finalMessage();`;
