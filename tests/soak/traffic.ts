import { connectRaw } from "../support/raw-client.ts";
import type { Random } from "../support/random.ts";
import { add, type Sum, type Tally } from "./tally.ts";

export interface Traffic {
  url: string;
  keys: readonly { name: string; key: string }[];
  random: Random;
  /** What clients saw the end of, or left in the middle of, and so what has to be counted. */
  seen: Tally;
  /** What the simulator tells its sums by: the same, less what clients left. */
  finished: Tally;
  /** How often each kind of request was made. */
  kinds: Map<string, number>;
}

interface Ask {
  name: string;
  key: string;
  usage: Sum;
  path: string;
  body: object;
}

const messages = [{ role: "user", content: "Soak me" }];

/** Every endpoint whose answer tells its usage, streamed and not. */
const questions: readonly { path: string; body: object }[] = [
  { path: "/v1/chat/completions", body: { messages } },
  { path: "/v1/chat/completions", body: { messages, stream: true } },
  { path: "/v1/completions", body: { prompt: "Soak me" } },
  { path: "/v1/completions", body: { prompt: "Soak me", stream: true } },
  { path: "/v1/messages", body: { messages } },
  { path: "/v1/messages", body: { messages, stream: true } },
  { path: "/v1/responses", body: { input: "Soak me" } },
  { path: "/v1/responses", body: { input: "Soak me", stream: true } },
];

/** The answer is whole after these. */
const detours = [
  "",
  "",
  "",
  "gap=200ms@0",
  "slow-head=300ms",
  "split=50",
  "crlf",
  "comments",
  "gzip",
  "http10",
  "connection-close",
  "early-hints",
  "tokens=2000",
  "huge-frame=1MB",
];

/** There is none after these. */
const refusals = [
  "reset-before-head",
  "close-before-head",
  "garbage",
  "half-head",
  "status=500",
  "status=429",
  "status=999",
];

/** A stream is broken after these. */
const breaks = ["die@2", "reset@2", "die-mid-frame@3", "reset-mid-frame@3"];

type Kind = (traffic: Traffic) => Promise<void>;

const kinds: Readonly<Record<string, Kind>> = {
  whole,
  refused,
  broken,
  left,
  "left early": leftEarly,
  slow,
  download,
  upload,
  stranger,
};

/** Whole answers are as frequent as three of the others together. */
const drawn = [...Object.keys(kinds), "whole", "whole"];

/** Makes requests of all kinds, one after the other, until told to stop. */
export async function talk(traffic: Traffic, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const kind = traffic.random.pick(drawn);
    traffic.kinds.set(kind, (traffic.kinds.get(kind) ?? 0) + 1);
    await kinds[kind]?.(traffic).catch((error: unknown) => {
      throw new Error(`A request of the kind "${kind}" went wrong`, { cause: error });
    });
  }
}

function askAtRandom({ keys, random }: Traffic, wants: (body: object) => boolean = () => true): Ask {
  const { name, key } = random.pick(keys);
  const { path, body } = random.pick(questions.filter((question) => wants(question.body)));
  const usage = { requests: 1, inputTokens: random.below(5000), outputTokens: 1 + random.below(900) };
  // The simulator sums by whom requests name.
  const user = path === "/v1/messages" ? { metadata: { user_id: name } } : { user: name };
  return { name, key, usage, path, body: { model: "m", max_tokens: 1 + random.below(20), ...user, ...body } };
}

const isStreamed = (body: object): boolean => "stream" in body;

function headersOf({ key, usage }: Ask, script: string): Record<string, string> {
  const told = `usage=${usage.inputTokens},${usage.outputTokens}`;
  return { "x-api-key": key, "content-type": "application/json", "x-simulate": `${told}; ${script}` };
}

const send = ({ url }: Traffic, ask: Ask, script: string): Promise<Response> =>
  fetch(url + ask.path, { method: "POST", headers: headersOf(ask, script), body: JSON.stringify(ask.body) });

async function whole(traffic: Traffic): Promise<void> {
  const ask = askAtRandom(traffic);
  const script = traffic.random.pick(detours);
  const response = await send(traffic, ask, script);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${ask.path} with ${script}: ${response.status} ${text.slice(0, 300)}`);
  count(traffic, ask);
}

function count({ seen, finished }: Traffic, { name, usage }: Ask): void {
  add(seen, name, usage);
  add(finished, name, usage);
}

async function refused(traffic: Traffic): Promise<void> {
  const script = traffic.random.pick(refusals);
  const response = await send(traffic, askAtRandom(traffic), script);
  await response.text();
  if (response.ok) throw new Error(`${script} was answered with ${response.status}`);
}

async function broken(traffic: Traffic): Promise<void> {
  const script = traffic.random.pick(breaks);
  const response = await send(traffic, askAtRandom(traffic, isStreamed), script);
  const looksWhole = await response.text().then(
    () => true,
    () => false,
  );
  if (looksWhole) throw new Error(`${script} looks like a whole answer`);
}

/** Leaves once the usage of the input was told: it counts. */
async function left(traffic: Traffic): Promise<void> {
  const streamed = askAtRandom(traffic, isStreamed);
  const ask = { ...streamed, path: "/v1/messages", body: { model: "m", max_tokens: 9, stream: true, messages } };
  const client = await connectRaw(traffic.url);
  client.request("POST", ask.path, headersOf(ask, "gap=forever@5"), JSON.stringify(ask.body));
  await client.bodyContaining("content_block_delta");
  leave(traffic, client);
  add(traffic.seen, ask.name, { ...ask.usage, outputTokens: 0 });
}

/** Leaves before there is an answer: nothing counts. */
async function leftEarly(traffic: Traffic): Promise<void> {
  const ask = askAtRandom(traffic);
  const client = await connectRaw(traffic.url);
  client.request("POST", ask.path, headersOf(ask, "slow-head=forever"), JSON.stringify(ask.body));
  await Bun.sleep(traffic.random.below(50));
  leave(traffic, client);
}

function leave({ random }: Traffic, client: { reset(): void; close(): void; halfClose(): void }): void {
  random.pick([() => client.reset(), () => client.close(), () => client.halfClose()])();
}

/** Reads, rests, and reads on. */
async function slow(traffic: Traffic): Promise<void> {
  const ask = askAtRandom(traffic, isStreamed);
  const client = await connectRaw(traffic.url);
  client.request("POST", ask.path, headersOf(ask, "tokens=3000"), JSON.stringify(ask.body));
  await client.nextEvent();
  client.pause();
  await Bun.sleep(300);
  client.resume();
  if ((await client.ended()) !== "complete") throw new Error("A slow reader's answer broke");
  client.close();
  count(traffic, ask);
}

const megabyte = 1024 * 1024;

async function download(traffic: Traffic): Promise<void> {
  const { name, key } = traffic.random.pick(traffic.keys);
  const response = await fetch(`${traffic.url}/v1/files/1`, {
    headers: { "x-api-key": key, "x-simulate": "body=3MB" },
  });
  const { byteLength } = await response.arrayBuffer();
  if (byteLength !== 3 * megabyte) throw new Error(`A download of 3 MB had ${byteLength} bytes`);
  add(traffic.seen, name, { requests: 1, inputTokens: 0, outputTokens: 0 });
}

async function upload(traffic: Traffic): Promise<void> {
  const { name, key } = traffic.random.pick(traffic.keys);
  const headers = { "x-api-key": key, "content-type": "application/octet-stream" };
  const body = new Uint8Array(megabyte);
  const response = await fetch(`${traffic.url}/v1/files`, { method: "PUT", headers, body });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`An upload was answered with ${response.status}`);
  add(traffic.seen, name, { requests: 1, inputTokens: 0, outputTokens: 0 });
}

async function stranger(traffic: Traffic): Promise<void> {
  const response = await fetch(`${traffic.url}/v1/models`, {
    headers: { "x-api-key": `wrong${traffic.random.below(99)}` },
  });
  await response.text();
  if (response.status !== 401) throw new Error(`A stranger was answered with ${response.status}`);
}
