import { connectRaw } from "../support/raw-client.ts";
import type { Random } from "../support/random.ts";
import { add, type Sum, type Tally } from "./tally.ts";

export interface Traffic {
  url: string;
  keys: readonly { name: string; key: string }[];
  random: Random;
  /** Usage of the responses that clients read to the end or left midway: what the program must count. */
  seen: Tally;
  /** The same without the responses that clients left: what the simulator reports. */
  finished: Tally;
  /** Number of requests of each kind. */
  kinds: Map<string, number>;
}

interface PlannedRequest {
  name: string;
  key: string;
  usage: Sum;
  path: string;
  body: object;
}

const messages = [{ role: "user", content: "Soak me" }];

/** Each endpoint that reports usage, streamed and whole. */
const endpoints: readonly { path: string; body: object }[] = [
  { path: "/v1/chat/completions", body: { messages } },
  { path: "/v1/chat/completions", body: { messages, stream: true } },
  { path: "/v1/completions", body: { prompt: "Soak me" } },
  { path: "/v1/completions", body: { prompt: "Soak me", stream: true } },
  { path: "/v1/messages", body: { messages } },
  { path: "/v1/messages", body: { messages, stream: true } },
  { path: "/v1/responses", body: { input: "Soak me" } },
  { path: "/v1/responses", body: { input: "Soak me", stream: true } },
];

/** The response is complete with these. */
const harmlessScripts = [
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

/** There is no successful response with these. */
const failingScripts = [
  "reset-before-head",
  "close-before-head",
  "garbage",
  "half-head",
  "status=500",
  "status=429",
  "status=999",
];

/** A stream breaks with these. */
const breakingScripts = ["die@2", "reset@2", "die-mid-frame@3", "reset-mid-frame@3"];

type Kind = (traffic: Traffic) => Promise<void>;

const kinds: Readonly<Record<string, Kind>> = {
  whole,
  failing,
  broken,
  left,
  "left early": leftEarly,
  "slow reader": slowReader,
  download,
  upload,
  "unknown key": unknownKey,
};

/** "whole" is three times as frequent as each other kind. */
const weightedKinds = [...Object.keys(kinds), "whole", "whole"];

/** Sends requests of random kinds in sequence until `isOver`. */
export async function sendRequests(traffic: Traffic, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const kind = traffic.random.pick(weightedKinds);
    traffic.kinds.set(kind, (traffic.kinds.get(kind) ?? 0) + 1);
    await kinds[kind]?.(traffic).catch((error: unknown) => {
      throw new Error(`A request of kind "${kind}" failed`, { cause: error });
    });
  }
}

function planRequest({ keys, random }: Traffic, matches: (body: object) => boolean = () => true): PlannedRequest {
  const { name, key } = random.pick(keys);
  const { path, body } = random.pick(endpoints.filter((endpoint) => matches(endpoint.body)));
  const usage = { requests: 1, inputTokens: random.below(5000), outputTokens: 1 + random.below(900) };
  // The simulator sums usage by the user that a request names.
  const user = path === "/v1/messages" ? { metadata: { user_id: name } } : { user: name };
  return { name, key, usage, path, body: { model: "m", max_tokens: 1 + random.below(20), ...user, ...body } };
}

const isStreamed = (body: object): boolean => "stream" in body;

function headersOf({ key, usage }: PlannedRequest, script: string): Record<string, string> {
  const reportedUsage = `usage=${usage.inputTokens},${usage.outputTokens}`;
  return { "x-api-key": key, "content-type": "application/json", "x-simulate": `${reportedUsage}; ${script}` };
}

const send = ({ url }: Traffic, request: PlannedRequest, script: string): Promise<Response> =>
  fetch(url + request.path, {
    method: "POST",
    headers: headersOf(request, script),
    body: JSON.stringify(request.body),
  });

async function whole(traffic: Traffic): Promise<void> {
  const request = planRequest(traffic);
  const script = traffic.random.pick(harmlessScripts);
  const response = await send(traffic, request, script);
  const text = await response.text();
  if (response.status !== 200)
    throw new Error(`${request.path} with ${script}: ${response.status} ${text.slice(0, 300)}`);
  count(traffic, request);
}

function count({ seen, finished }: Traffic, { name, usage }: PlannedRequest): void {
  add(seen, name, usage);
  add(finished, name, usage);
}

async function failing(traffic: Traffic): Promise<void> {
  const script = traffic.random.pick(failingScripts);
  const response = await send(traffic, planRequest(traffic), script);
  await response.text();
  if (response.ok) throw new Error(`${script} got a ${response.status}`);
}

async function broken(traffic: Traffic): Promise<void> {
  const script = traffic.random.pick(breakingScripts);
  const response = await send(traffic, planRequest(traffic, isStreamed), script);
  const isComplete = await response.text().then(
    () => true,
    () => false,
  );
  // If the break arrives with the first bytes, the response is a 502.
  if (isComplete && response.ok) throw new Error(`${script} got a complete response`);
}

/** Leaves after the input usage was reported, which must be counted. */
async function left(traffic: Traffic): Promise<void> {
  const streamed = planRequest(traffic, isStreamed);
  const request = { ...streamed, path: "/v1/messages", body: { model: "m", max_tokens: 9, stream: true, messages } };
  const client = await connectRaw(traffic.url);
  client.request("POST", request.path, headersOf(request, "gap=forever@5"), JSON.stringify(request.body));
  await client.bodyContaining("content_block_delta");
  leave(traffic, client);
  add(traffic.seen, request.name, { ...request.usage, outputTokens: 0 });
}

/** Leaves before the response begins: nothing is counted. */
async function leftEarly(traffic: Traffic): Promise<void> {
  const request = planRequest(traffic);
  const client = await connectRaw(traffic.url);
  client.request("POST", request.path, headersOf(request, "slow-head=forever"), JSON.stringify(request.body));
  // Plays a client that leaves at a random time.
  await Bun.sleep(traffic.random.below(50));
  leave(traffic, client);
}

function leave({ random }: Traffic, client: { reset(): void; close(): void; halfClose(): void }): void {
  random.pick([() => client.reset(), () => client.close(), () => client.halfClose()])();
}

/** Stalls once while it reads. */
async function slowReader(traffic: Traffic): Promise<void> {
  const request = planRequest(traffic, isStreamed);
  const client = await connectRaw(traffic.url);
  client.request("POST", request.path, headersOf(request, "tokens=3000"), JSON.stringify(request.body));
  await client.nextEvent();
  client.pause();
  await Bun.sleep(300);
  client.resume();
  if ((await client.ended()) !== "complete") throw new Error("A slow reader's response broke");
  client.close();
  count(traffic, request);
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
  if (!response.ok) throw new Error(`An upload got a ${response.status}`);
  add(traffic.seen, name, { requests: 1, inputTokens: 0, outputTokens: 0 });
}

async function unknownKey(traffic: Traffic): Promise<void> {
  const response = await fetch(`${traffic.url}/v1/models`, {
    headers: { "x-api-key": `wrong${traffic.random.below(99)}` },
  });
  await response.text();
  if (response.status !== 401) throw new Error(`An unknown key got a ${response.status}`);
}
