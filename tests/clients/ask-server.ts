/**
 * Starts a client that is itself a server, asks it once, and prints what its user sees:
 * `bun ask-server.ts open-webui|litellm PROGRAM PROMPT`, in its home folder's `work` and with its environment.
 */
import OpenAI from "openai";
import { chromium } from "playwright-core";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chromiumPath, launchFlags } from "../browser/support/console-under-test.ts";

const startMs = 300_000;
const answerMs = 300_000;

interface Server {
  args: (port: number) => string[];
  environment: Readonly<Record<string, string>>;
  health: string;
  ask: (origin: string, prompt: string) => Promise<string>;
}

/** It does not start with a weak one. */
const masterKey = `sk-${crypto.randomUUID()}`;

const servers: Readonly<Record<string, Server>> = {
  "open-webui": {
    args: (port) => ["serve", "--host", "127.0.0.1", "--port", String(port)],
    // Without accounts, and without what it fetches.
    environment: { DATA_DIR: "data", WEBUI_AUTH: "False", OFFLINE_MODE: "true", RAG_EMBEDDING_ENGINE: "openai" },
    health: "/health",
    ask: askOnPage,
  },
  litellm: {
    args: (port) => ["--config", "../config.yaml", "--host", "127.0.0.1", "--port", String(port)],
    environment: { LITELLM_MASTER_KEY: masterKey },
    health: "/health/liveliness",
    ask: askThrough,
  },
};

/** What stands in the conversation, and its title beside it. */
async function askOnPage(origin: string, prompt: string): Promise<string> {
  await using browser = await chromium.launch({ executablePath: chromiumPath, args: launchFlags });
  const page = await browser.newPage();
  page.setDefaultTimeout(startMs);
  await page.goto(origin);
  await page.getByText("Okay, Let's Go!").click();
  await page.locator("#chat-input").fill(prompt);
  await page.locator("#send-message-button").click();
  await page.locator(".chat-assistant").waitFor();
  const read = async (): Promise<string> => {
    const answers = await page.locator(".chat-assistant").allInnerTexts();
    const [name = ""] = await page.locator("#sidebar-chat-item").allInnerTexts();
    // Below its title is its age.
    return `${answers.join(" ").trim()} · in the list of chats: ${name.trim().split("\n")[0]}`;
  };
  return await settle(read);
}

/** It has been the same for so long as a question for a title takes. */
async function settle(read: () => Promise<string>): Promise<string> {
  const quietMs = 20_000;
  let before = "";
  let since = performance.now();
  await pollUntil(async () => {
    const now = await read();
    if (now !== before) since = performance.now();
    before = now;
    return performance.now() - since > quietMs;
  }, answerMs);
  return before;
}

async function askThrough(origin: string, prompt: string): Promise<string> {
  // Those that LiteLLM sends again are to be counted.
  const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: masterKey, maxRetries: 0 });
  const stream = await client.chat.completions.create({
    model: "local",
    stream: true,
    messages: [{ role: "user", content: prompt }],
  });
  let text = "";
  for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
  return text;
}

const [, , name = "", program = "", prompt = ""] = process.argv;
const server = servers[name];
if (server === undefined) throw new Error(`There is no ${name}`);
const port = findFreePort();
const child = Bun.spawn([program, ...server.args(port)], {
  env: { ...process.env, ...server.environment },
  stdout: "ignore",
  stderr: "ignore",
});
const origin = `http://127.0.0.1:${port}`;
try {
  const ended = child.exited.then((status) => Promise.reject(new Error(`${name} exited with ${status}`)));
  await Promise.race([ended, pollUntil(async () => (await fetch(`${origin}${server.health}`)).ok, startMs)]);
  process.stdout.write(`${await server.ask(origin, prompt).catch(String)}\n`);
} finally {
  child.kill();
  await child.exited;
}
