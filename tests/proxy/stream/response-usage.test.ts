import { describe, expect, test } from "bun:test";
import {
  brotliCompressSync,
  createBrotliCompress,
  createDeflate,
  createGzip,
  createZstdCompress,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { Passage, readWholeUsage } from "../../../src/proxy/stream/passage.ts";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { noStreamUsage, readEventUsage, usageOfStream } from "../../../src/proxy/stream/usage.ts";
import { recordedResponses } from "../../fixtures/recorded-responses.ts";
import { eventDataOf } from "../../support/event-stream-reference.ts";
import { createRandom, cutAtEveryByte, cutAtRandom, type Random } from "../../support/random.ts";
import { noUsage, type Usage } from "../../../src/domain/usage.ts";

const utf8 = new TextEncoder();
const eventStream = { contentType: "text/event-stream", contentEncoding: null };
const json = { contentType: "application/json", contentEncoding: null };
const chat = utf8.encode('{"usage":{"prompt_tokens":5,"completion_tokens":2}}');
const five: Usage = { inputTokens: 5, outputTokens: 2 };

interface BodyHeaders {
  contentType: string | null;
  contentEncoding: string | null;
}

const kind = ({ contentType, contentEncoding }: BodyHeaders) => kindOf(contentType, contentEncoding);

async function usageOf(headers: BodyHeaders, pieces: Iterable<Uint8Array>): Promise<Usage> {
  const passage = new Passage(kind(headers), { listener: {} });
  for (const piece of pieces) {
    passage.push(piece);
    await passage.backlog;
  }
  return passage.end();
}

describe("usage reader", () => {
  test.each(recordedResponses)(
    "reads $server, cut at every byte and by chance",
    async ({ contentType, body, usage }) => {
      const bytes = utf8.encode(body);
      const headers = { contentType, contentEncoding: null };
      for (const pieces of cutAtEveryByte(bytes)) expect(await usageOf(headers, pieces)).toEqual(usage);
      for (let seed = 0; seed < 50; seed++) {
        expect(await usageOf(headers, cutAtRandom(bytes, createRandom(seed)))).toEqual(usage);
      }
    },
  );

  test.each([
    [" data:", noUsage],
    ["\n data:", noUsage],
    ["\uFEFF data:", noUsage],
    ["\n\r\ndata:", five],
    ["\uFEFFdata:", five],
  ])("reads an event whose line begins with %j as clients do, wherever it is cut", async (begin, usage) => {
    const stream = utf8.encode(`${begin}{"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n`);
    for (const pieces of cutAtEveryByte(stream)) expect(await usageOf(eventStream, pieces)).toEqual(usage);
  });

  test.each([
    ["application/json; charset=utf-8", five],
    ["Application/Vnd.API+JSON", five],
    ["text/plain", five],
    ["text/event-stream", five],
    ["text/json", five],
    ["application/x-ndjson", five],
    ["application/octet-stream", noUsage],
    ["audio/mpeg", noUsage],
    ["text/html", noUsage],
    [null, five],
  ])("reads a JSON object under the type %p only if the type may be JSON", async (contentType, usage) => {
    expect(await usageOf({ contentType, contentEncoding: null }, [chat])).toEqual(usage);
  });

  test.each(["application/json", "text/plain", null])(
    "recognises an event stream by its first byte under the type %p",
    async (contentType) => {
      const stream = utf8.encode(`\n: hello\n\ndata: ${Buffer.from(chat).toString()}\n\n`);
      for (const pieces of cutAtEveryByte(stream)) {
        expect(await usageOf({ contentType, contentEncoding: null }, pieces)).toEqual(five);
      }
    },
  );

  test("reads the lines of application/x-ndjson as the events of a stream", async () => {
    const lines =
      '{"message":{"usage":{"input_tokens":5,"output_tokens":1}}}\n\n{"a":"b"}\r\n{"usage":{"output_tokens":2}}';
    for (const pieces of cutAtEveryByte(utf8.encode(lines))) {
      expect(await usageOf({ contentType: "application/x-ndjson", contentEncoding: null }, pieces)).toEqual(five);
    }
  });

  test("reads an event whose data is in several lines", async () => {
    const stream = utf8.encode('data: {"usage"\ndata: :\ndata: {"prompt_tokens":5,\ndata: "completion_tokens":2}}\n\n');
    for (const pieces of cutAtEveryByte(stream)) expect(await usageOf(eventStream, pieces)).toEqual(five);
  });

  test("agrees with JSON.parse of every event in 5,000 random event streams", async () => {
    for (let round = 0; round < 5000; round++) {
      const random = createRandom(round);
      const stream = utf8.encode(Array.from({ length: random.below(12) }, () => randomEvent(random)).join(""));
      const expected = usageOfStream(
        eventDataOf(stream).reduce((usage, data) => readEventUsage(findJson(data), usage), noStreamUsage),
      );
      expect({ round, ...(await usageOf(eventStream, cutAtRandom(stream, random))) }).toEqual({ round, ...expected });
    }
  });
});

describe("usage reader of a compressed response", () => {
  const encodings: [name: string, compress: (bytes: Uint8Array) => Uint8Array][] = [
    ["gzip", gzipSync],
    ["X-GZIP", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
  ];

  test.each(encodings)("reads %s, cut at every byte", async (contentEncoding, compress) => {
    const bytes = compress(chat);
    for (const pieces of cutAtEveryByte(bytes)) {
      expect(await usageOf({ ...json, contentEncoding }, pieces)).toEqual(five);
    }
  });

  test.each(["gzip, gzip", "gzip,identity, GZIP", "br, gzip"])(
    "reads a body that is encoded as %s",
    async (encoding) => {
      const inner = encoding.startsWith("br") ? brotliCompressSync(chat) : gzipSync(chat);
      for (const pieces of cutAtEveryByte(gzipSync(inner))) {
        expect(await usageOf({ ...json, contentEncoding: encoding }, pieces)).toEqual(five);
      }
    },
  );

  test("reads an event stream in gzip", async () => {
    for (const { contentType, body, usage } of recordedResponses) {
      expect(await usageOf({ contentType, contentEncoding: "gzip" }, [gzipSync(body)])).toEqual(usage);
    }
  });

  test.each(encodings)("finds no usage if %s is broken, truncated or empty", async (contentEncoding, compress) => {
    const headers = { ...json, contentEncoding };
    expect(await usageOf(headers, [])).toEqual(noUsage);
    expect(await usageOf(headers, [utf8.encode("not compressed at all"), compress(chat)])).toEqual(noUsage);
    expect(await usageOf(headers, [compress(chat).subarray(0, 8)])).toEqual(noUsage);
  });

  test("finds no usage in an unknown encoding", async () => {
    expect(await usageOf({ ...json, contentEncoding: "compress" }, [chat])).toEqual(noUsage);
    expect(await usageOf({ ...json, contentEncoding: "constructor" }, [chat])).toEqual(noUsage);
    expect(await usageOf({ ...json, contentEncoding: "gzip, gzip, gzip, gzip" }, [gzipSync(chat)])).toEqual(noUsage);
    expect(await usageOf({ ...json, contentEncoding: "identity" }, [chat])).toEqual(five);
    expect(await usageOf({ ...json, contentEncoding: "" }, [chat])).toEqual(five);
  });

  test("keeps the usage seen before a response is cut short", async () => {
    const start = utf8.encode('data: {"message":{"usage":{"input_tokens":25,"output_tokens":1}}}\n\n');
    const filler = utf8.encode(Array.from({ length: 5000 }, (_, at) => `data: {"n":${Math.sin(at)}}\n\n`).join(""));
    const bytes = gzipSync(Buffer.concat([start, filler]));
    const usage = await usageOf({ ...eventStream, contentEncoding: "gzip" }, [bytes.subarray(0, bytes.length - 100)]);
    expect(usage).toEqual({ inputTokens: 25, outputTokens: 1 });
  });

  test.each(encodings)("reads %s that is flushed but not finished", async (contentEncoding, compress) => {
    const flushed = await flushedStart(compress, chat);
    for (const pieces of cutAtEveryByte(flushed)) {
      expect(await usageOf({ ...json, contentEncoding }, pieces)).toEqual(five);
    }
  });

  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ] as const)("reads %s with bytes after its end", async (contentEncoding, compress) => {
    const headers = { ...json, contentEncoding };
    const bytes = compress(chat);
    const trailed = [new Uint8Array(9), bytes.subarray(0, 5)];
    for (const rest of trailed) {
      for (const pieces of cutAtEveryByte(Buffer.concat([bytes, rest]))) {
        expect(await usageOf(headers, pieces)).toEqual(five);
      }
    }
  });

  test("reads gzip in several members, with every optional field in their headers", async () => {
    const extra = Uint8Array.of(0x1f, 0x8b, 8, 0x1c, 0, 0, 0, 0, 0, 3, 2, 0, 0x61, 0x62, 0x6e, 0, 0x63, 0);
    const members = [gzipSync(chat.subarray(0, 20)), Buffer.concat([extra, gzipSync(chat.subarray(20)).subarray(10)])];
    for (const pieces of cutAtEveryByte(Buffer.concat(members))) {
      expect(await usageOf({ ...json, contentEncoding: "gzip" }, pieces)).toEqual(five);
    }
  });

  test("decompresses 512 MB in little memory and makes a faster writer wait", async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20, 0x20));
    const passage = new Passage(kind({ ...json, contentEncoding: "gzip" }), { listener: {} });
    const before = process.memoryUsage().rss;
    let peak = 0;
    let waits = 0;
    for (let round = 0; round < 8; round++) {
      passage.push(bomb);
      const wait = passage.backlog;
      if (wait !== undefined) waits++;
      await wait;
      peak = Math.max(peak, process.memoryUsage().rss - before);
    }
    expect(await passage.end()).toEqual(noUsage);
    expect(waits).toBeGreaterThan(0);
    expect(peak).toBeLessThan(150 << 20);
  });
});

/** Compressed bytes of everything that was written, as far as a flush goes: the end is missing. */
async function flushedStart(compress: (bytes: Uint8Array) => Uint8Array, bytes: Uint8Array): Promise<Uint8Array> {
  const stream = compressorOf(compress);
  const pieces: Uint8Array[] = [];
  stream.on("data", (piece: Uint8Array) => pieces.push(piece));
  stream.write(bytes);
  await new Promise<void>((resolve) => stream.flush(resolve));
  stream.destroy();
  return Buffer.concat(pieces);
}

function compressorOf(compress: unknown) {
  if (compress === gzipSync) return createGzip();
  if (compress === deflateSync) return createDeflate();
  return compress === brotliCompressSync ? createBrotliCompress() : createZstdCompress();
}

const datas = [
  ["{}"],
  ["[DONE]"],
  ['{"a":"usage\\":{"}'],
  ['{"usage":null}'],
  ['{"usage":{"prompt_tokens":7,"completion_tokens":0}}'],
  ['{"us\\u0061ge":{"completion_tokens":3}}'],
  ['{"usage":', '{"output_tokens"', ":9}}"],
  ['{"choices":[{"usage":{"prompt_tokens":1}}]}'],
  ['{"message":{"usage":{"input_tokens":11}}}'],
];

function randomEvent(random: Random): string {
  const lines = random.pick(datas).map((line) => `${random.pick(["data:", "data: "])}${line}`);
  const others = random.pick([[], [], [": usage"], ["event: usage"], [""]]);
  const lineEnd = random.pick(["\n", "\n", "\n", "\r\n", "\r"]);
  return [...others, ...lines, "", ""].join(lineEnd);
}

function findJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

describe("a whole answer", () => {
  test.each(recordedResponses)("of $server tells the same usage as in pieces", async ({ contentType, body, usage }) => {
    expect(await readWholeUsage(utf8.encode(body), kindOf(contentType, null))).toEqual(usage);
  });

  test("reads a response that is compressed, too long to parse, or truncated", async () => {
    const long = utf8.encode(`{"text":"${"x".repeat(100_000)}",${Buffer.from(chat).toString().slice(1)}`);
    const half = utf8.encode('{"usage":{"prompt_tokens":5,"completion_tokens":2},"choices":[');
    expect(await readWholeUsage(gzipSync(chat), kind({ ...json, contentEncoding: "gzip" }))).toEqual(five);
    expect(await readWholeUsage(long, kind(json))).toEqual(five);
    expect(await readWholeUsage(half, kind(json))).toEqual(five);
  });

  test("finds no usage in what is not JSON, or empty", async () => {
    for (const text of ["", "null", "[]", "not json"]) {
      expect(await readWholeUsage(utf8.encode(text), kind(json))).toEqual(noUsage);
    }
  });
});
