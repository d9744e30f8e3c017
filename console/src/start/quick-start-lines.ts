import { agentSettings, type QuickStart, type QuickStartValues } from "./agent-settings.ts";

/** Lines to copy for the usual clients. */
export function quickStarts(values: QuickStartValues): QuickStart[] {
  return [
    { id: "curl", label: "curl", note: "In a shell; streams a chat.", text: curl(values) },
    { id: "openai-python", label: "OpenAI, Python", note: "After pip install openai.", text: openAiPython(values) },
    { id: "openai-node", label: "OpenAI, Node", note: "After npm install openai.", text: openAiNode(values) },
    {
      id: "anthropic-python",
      label: "Anthropic, Python",
      note: "After pip install anthropic.",
      text: anthropicPython(values),
    },
    {
      id: "anthropic-node",
      label: "Anthropic, Node",
      note: "After npm install @anthropic-ai/sdk.",
      text: anthropicNode(values),
    },
    ...agentSettings(values),
    {
      id: "cursor",
      label: "Cursor",
      note: "In Settings, Models. Cursor’s own servers send the requests: they must reach this address over the internet.",
      text: cursor(values),
      isAgent: true,
    },
  ];
}

/** Quotes a text for a shell: everything but the quote itself is literal in single quotes. */
const shell = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
/** Quotes a text for Python, JavaScript and TOML, whose strings share JSON's escapes. */
const quoted = (text: string): string => JSON.stringify(text);

function curl({ origin, key, model }: QuickStartValues): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello!" }] });
  return `curl -N ${shell(`${origin}/v1/chat/completions`)} \\
  -H ${shell(`Authorization: Bearer ${key}`)} \\
  -H 'Content-Type: application/json' \\
  -d ${shell(body)}`;
}

const openAiPython = ({ origin, key, model }: QuickStartValues): string => `from openai import OpenAI

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

const openAiNode = ({ origin, key, model }: QuickStartValues): string => `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${quoted(`${origin}/v1`)}, apiKey: ${quoted(key)} });
const stream = await client.chat.completions.create({
  model: ${quoted(model)},
  messages: [{ role: "user", content: "Hello!" }],
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");`;

const anthropicPython = ({ origin, key, model }: QuickStartValues): string => `from anthropic import Anthropic

client = Anthropic(base_url=${quoted(origin)}, api_key=${quoted(key)})
with client.messages.stream(
    model=${quoted(model)},
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello!"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`;

const anthropicNode = ({ origin, key, model }: QuickStartValues): string => `import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: ${quoted(origin)}, apiKey: ${quoted(key)} });
const stream = client.messages.stream({
  model: ${quoted(model)},
  max_tokens: 1024,
  messages: [{ role: "user", content: "Hello!" }],
});
stream.on("text", (text) => process.stdout.write(text));
await stream.finalMessage();`;

const cursor = ({ origin, key, model }: QuickStartValues): string => `OpenAI API Key: ${key}
Override OpenAI Base URL: ${origin}/v1
Custom model: ${model}`;
