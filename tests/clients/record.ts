/**
 * Records what the real clients send in a conversation of three questions, each with calls of tools, as somebody sets them up
 * who has not read Help: `bun tests/clients/record.ts [--client codex]` writes tests/fixtures/client-requests. Texts are
 * replaced by their hash and length, and the schemas of tools are left out: they are long, and not ours.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startSimulator } from "../support/simulator/simulator.ts";
import { repositoryRoot } from "../support/import-table.ts";
import { type RealClient, realClients, versionOf } from "./client.ts";
import { findWhyNoClients, installClient } from "./installed-client.ts";

const { values } = parseArgs({ options: { client: { type: "string" } } });
const folder = join(repositoryRoot, "tests/fixtures/client-requests");
const questions = ["What is in this folder?", "And in the one above it?", "Which of them is larger?"];

/** Help's settings without those that do what client rules do. */
const unaided: Readonly<Partial<Record<RealClient["id"], (text: string) => string>>> = {
  "claude-code": (text) => text.replace(/ *"CLAUDE_CODE_ATTRIBUTION_HEADER": "0",\n/, ""),
  codex: (text) => text.replace('web_search = "disabled"\n', "").replace(/\[agents\]\nenabled = false\n/, ""),
  opencode: (text) => text,
};

const longTexts = new Set(["text", "content", "description", "thinking", "output", "arguments", "system"]);
const maxShort = 40;

/** The same text becomes the same. */
function shorten(value: unknown, name = ""): unknown {
  if (typeof value === "string") {
    if (!longTexts.has(name) || value.length <= maxShort || value.startsWith("x-anthropic-billing-header"))
      return value;
    const hash = new Bun.CryptoHasher("sha256").update(value).digest("hex").slice(0, 8);
    return `Text ${hash} of ${value.length} characters.`;
  }
  if (Array.isArray(value)) return value.map((element) => shorten(element, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([member, inner]) => {
      // They name the device and the session.
      if (["metadata", "client_metadata", "prompt_cache_key"].includes(member)) return [];
      const isSchema = member === "input_schema" || member === "parameters";
      return [[member, isSchema ? { type: "object", properties: {} } : shorten(inner, member)]];
    }),
  );
}

const paths = new Set(["/v1/messages", "/v1/responses", "/v1/chat/completions"]);

async function record(client: RealClient, goOn: RealClient["ask"]): Promise<void> {
  using backend = startSimulator({ defaultOutputTokens: 30, maxOutputTokens: 30 });
  const address = { origin: backend.url, key: "key", model: "local" };
  using installed = await installClient(client, address, unaided[client.id]);
  for (const [at, question] of questions.entries()) {
    await installed.run(at === 0 ? client.ask(question) : goOn(question));
  }
  const requests = backend
    .requests()
    .filter(({ path }) => paths.has(path))
    .map((request) => ({
      path: request.path,
      userAgent: request.header("user-agent"),
      body: shorten(request.json()),
    }));
  const file = join(folder, `${client.id}-${versionOf(client)}.json`);
  await Bun.write(file, `${JSON.stringify({ program: `${client.label} ${versionOf(client)}`, requests }, null, 1)}\n`);
  process.stdout.write(`${file}: ${requests.length} requests\n`);
}

const whyNot = findWhyNoClients();
if (whyNot !== undefined) throw new Error(whyNot);
for (const client of realClients) {
  const { id, goOn } = client;
  if (goOn !== undefined && (values.client === undefined || values.client === id)) await record(client, goOn);
}
