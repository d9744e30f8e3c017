import fc from "fast-check";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { recordedResponses } from "../fixtures/recorded-responses.ts";
import { usageServers } from "../fixtures/usage-servers.ts";
import { cutAtRandom, type Random } from "../support/random.ts";
import { bodyPaths, chat, post, request, ruleSets, streamed, streamPaths, whole } from "./side-cases.ts";
import type { Answer, Case, Sent } from "./sides.ts";

/** The cases that a seed makes. */

const rules = Object.entries(ruleSets);

const streams: readonly string[] = [
  ...recordedResponses.filter(({ contentType }) => contentType.startsWith("text/event-stream")).map(({ body }) => body),
  ...usageServers.flatMap((server) => [
    server.stream({ include: true, continuous: false }),
    server.stream({ include: true, continuous: true }),
    server.stream({ include: false, continuous: false }),
  ]),
];

const oddEvents = [
  ": ping\n\n",
  "\n",
  "data:\n\n",
  "data: \n\n",
  "data: [DONE]\n\n",
  "event: ping\ndata: {}\n\n",
  "id: 7\nretry: 10\n\n",
  "data: {\ndata: }\n\n",
  'data: {"error":{"message":"no","type":"x"}}\n\n',
  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":8}}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":-7,"completion_tokens":1e99}}\n\n',
  'data: {"choices":[{"index":0,"delta":{"content":"' + "long ".repeat(15_000) + '"}}]}\n\n',
  'data: {"type":"response.completed","response":{"id":"resp_r","usage":{"input_tokens":3,"output_tokens":4}}}\n\n',
  "\uFEFFdata: {}\n\n",
];

/** A recorded stream with what may happen to it on its way. */
function randomStream(random: Random): Buffer {
  let text = random.pick(streams);
  for (let changes = random.below(4); changes > 0; changes--) {
    const events = text.split(/(?<=\n\n)/);
    const at = random.below(events.length + 1);
    const change = random.below(6);
    if (change === 0) events.splice(at, 1);
    else if (change === 1) events.splice(at, 0, events[random.below(events.length)] ?? "");
    else if (change === 2) events.splice(at, 2, ...events.slice(at, at + 2).toReversed());
    else events.splice(at, 0, random.pick(oddEvents));
    text = events.join("");
  }
  const breaks = random.pick(["\n", "\n", "\r\n", "\r"]);
  const bytes = Buffer.from(text.replaceAll("\n", breaks));
  return random.below(4) === 0 ? bytes.subarray(0, random.below(bytes.length + 1)) : bytes;
}

function randomAnswer(random: Random): Answer {
  const stream = randomStream(random);
  const coding = random.below(8);
  const bytes = coding === 0 ? gzipSync(stream) : coding === 1 ? brotliCompressSync(stream) : stream;
  const named = coding === 0 ? "Content-Encoding: gzip\r\n" : coding === 1 ? "Content-Encoding: br\r\n" : "";
  const type = random.pick(["text/event-stream", "text/event-stream; charset=utf-8", "application/json", "text/plain"]);
  const head = `HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${named}`;
  const pieces = cutAtRandom(bytes, random).slice(0, 4000);
  const framing = random.below(3);
  if (framing === 0) {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    return { pieces: [`${head}Content-Length: ${length}\r\n\r\n`, ...pieces] };
  }
  if (framing === 1) return { pieces: [`${head}Connection: close\r\n\r\n`, ...pieces], cut: "end" };
  const chunks = pieces.flatMap((piece) => [`${piece.length.toString(16)}\r\n`, piece, "\r\n"]);
  const ending = random.below(5);
  const last = ending < 3 ? ["0\r\n\r\n"] : [];
  return {
    pieces: [`${head}Transfer-Encoding: chunked\r\n\r\n`, ...chunks, ...last],
    ...(ending === 3 && { cut: "end" }),
    ...(ending === 4 && { cut: "reset" }),
  };
}

const askings = [
  streamed,
  chat,
  streamed.replace('"model"', '"stream_options":{"include_usage":true},"model"'),
  streamed.replace('"model"', '"stream_options":{"include_usage":true,"continuous_usage_stats":true},"model"'),
  streamed.replace('"model"', '"stream_options":{"include_usage":false},"model"'),
  streamed.replace('"model"', '"n":3,"model"'),
];

function streamCase(random: Random, number: number): Case {
  const [rule, keyRules] = random.pick(rules);
  const path = random.pick(streamPaths);
  const sent: Sent = { ...post(path, random.pick(askings)), answer: randomAnswer(random) };
  return { room: "streams", name: `random stream ${number}, ${path}, ${rule}`, rules: keyRules, sent: [sent] };
}

/** Members that somebody on the way reads. */
const members = [
  ..."model max_tokens max_completion_tokens max_output_tokens min_tokens n best_of stream stream_options messages input prompt system".split(
    " ",
  ),
  ..."tools chat_template_kwargs reasoning_effort thinking previous_response_id conversation background store extra_body fallbacks models".split(
    " ",
  ),
  ..."lora_path request_id n_predict n_cmpl ignore_eos prompt_cache_key metadata user file_id input_file_id service_tier priority".split(
    " ",
  ),
];

/** JSON text by hand: members more than once, escapes, odd blanks and numbers, as no writer of values makes. */
const randomValue: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(
      "1",
      "-1",
      "0",
      "1e3",
      "5000",
      "99999999999999999999",
      "1.5",
      "true",
      "false",
      "null",
      '"m"',
      '"claude-x"',
    ),
    fc.constantFrom(
      '""',
      '"resp_1"',
      '"high"',
      '"译文"',
      '"\\ud800"',
      '"a\\u0000b"',
      '"Hi"',
      "01",
      "'x'",
      "NaN",
      "tru",
    ),
    fc.string({ maxLength: 12, unit: "grapheme" }).map((text) => JSON.stringify(text)),
    fc.array(tie("value"), { maxLength: 4 }).map((values) => `[${values.join(",")}]`),
    tie("object"),
  ),
  object: fc
    .array(
      fc.tuple(fc.constantFrom(...members), fc.boolean(), tie("value"), fc.constantFrom("", "", " ", "\n\t", "\uFEFF")),
      {
        maxLength: 7,
      },
    )
    .map(
      (pairs) =>
        `{${pairs.map(([name, isEscaped, value, blank]) => `${blank}${nameOf(name, isEscaped)}:${value}`).join(",")}}`,
    ),
})).object;

const nameOf = (name: string, isEscaped: boolean): string =>
  isEscaped && name.length % 3 === 0 ? `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"` : `"${name}"`;

const contentTypes = [
  ..."application/json|application/json|application/json; charset=utf-8|text/plain|application/x-www-form-urlencoded|application/problem+json".split(
    "|",
  ),
  "multipart/form-data; boundary=b",
];

function randomBody(random: Random, json: string): [string, Buffer] {
  const shape = random.below(12);
  const chatty = json
    .replace(/^\{/, () => `{"model":${random.pick(['"m"', '"claude-x"', '"other"'])},`)
    .replace(",}", "}");
  const text =
    shape < 6
      ? chatty
      : shape === 6
        ? chatty.slice(0, random.below(chatty.length))
        : shape === 7
          ? `${json}${json}`
          : json;
  const form = `--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${json}\r\n--b--\r\n`;
  const type = random.pick(contentTypes);
  const bytes = Buffer.from(type.startsWith("multipart") ? form : text);
  if (shape === 8 && bytes.length > 0) bytes[random.below(bytes.length)] = 0xff;
  return [type, bytes];
}

function bodyCase(random: Random, number: number, json: string): Case {
  const [rule, keyRules] = random.pick(rules);
  const path = random.pick(bodyPaths);
  const [type, bytes] = randomBody(random, json);
  const isPacked = random.below(6) === 0;
  const headers = [`Content-Type: ${type}`, ...(isPacked ? ["Content-Encoding: gzip"] : [])];
  const body = isPacked ? gzipSync(bytes) : bytes;
  const answer =
    random.below(2) === 0 ? whole('{"id":"resp_1","usage":{"prompt_tokens":3,"completion_tokens":4}}') : undefined;
  const name = `random body ${number}, ${path}, ${type}, ${rule}: ${bytes.toString("latin1").slice(0, 300)}`;
  const sent: Sent = {
    bytes:
      random.below(3) === 0 ? chunked(path, headers, body, random) : request(`POST ${path} HTTP/1.1`, headers, body),
    ...(answer !== undefined && { answer }),
  };
  return { room: "bodies", name, rules: keyRules, sent: [sent] };
}

function chunked(path: string, headers: readonly string[], body: Buffer, random: Random): Sent["bytes"] {
  const pieces = cutAtRandom(body, random).map((piece) =>
    Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]),
  );
  const head = request(`POST ${path} HTTP/1.1`, [...headers, "Transfer-Encoding: chunked"]);
  return (key, id) => [...head(key, id), Buffer.concat(pieces), "0\r\n\r\n"];
}

/** @param seed makes the JSON texts, as `random` makes everything else */
export function randomCases(random: Random, seed: number, count: number): Case[] {
  const texts = fc.sample(randomValue, { seed, numRuns: count });
  return texts.flatMap((json, number) => [streamCase(random, number), bodyCase(random, number, json)]);
}
