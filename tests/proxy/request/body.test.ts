import { describe, expect, test } from "bun:test";
import { deflateRawSync, gzipSync, zstdCompressSync } from "node:zlib";
import {
  type BodyRules,
  type BodyStep,
  jsonType,
  readBody,
  type ReceivedBody,
} from "../../../src/proxy/request/body.ts";
import { getEndpoint } from "../../../src/proxy/rewrite/endpoint.ts";
import { HeldBytes, HeldShare } from "../../../src/proxy/request/body-budget-and-pace.ts";
import { passTicks } from "../../support/event-loop.ts";

const post = (headers: Record<string, string>, body: BodyInit | null = "{}", method = "POST"): Request =>
  new Request("http://h/v1/x", { method, headers, body });

describe("jsonType", () => {
  test.each([
    "application/json",
    "Application/JSON; charset=utf-8",
    " application/json ;x=y",
    "application/vnd.x+json",
  ])("accepts %s", (type) => expect(jsonType.test(type)).toBe(true));
  test.each(["", "text/plain", "application/jsonl", "application/x-ndjson", "multipart/form-data; boundary=json"])(
    "rejects %s",
    (type) => expect(jsonType.test(type)).toBe(false),
  );
});

describe("readBody", () => {
  const open = { "content-type": "application/json" };

  const chunked = (chunks: (string | Uint8Array)[]): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(Buffer.from(chunk));
        controller.close();
      },
    });

  interface Limits {
    maxBytes?: number;
    budget?: number;
    now?: () => number;
    asked?: BodyStep[];
    rules?: BodyRules;
    waitForTurn?: () => Promise<void>;
  }

  const free: BodyRules = {
    endpoint: getEndpoint("/v1/completions"),
    mustBeReadable: false,
    readsForms: false,
    checksForms: false,
  };
  const limited: BodyRules = { ...free, mustBeReadable: true };

  /** What was received, or the code of the refusal. */
  async function receive(request: Request, limits: Limits = {}): Promise<ReceivedBody | string> {
    const { maxBytes = 1e6, budget = 1e9, now = () => 0, asked = [], rules = free } = limits;
    const held = new HeldShare(new HeldBytes(budget, budget, now), 1);
    const { waitForTurn = () => Promise.resolve() } = limits;
    const askLimits = async (step: BodyStep): Promise<void> => void asked.push(step);
    const deps = { held, askLimits, maxBytes, waitForTurn, party: undefined };
    return readBody(request, rules, deps).catch((error: Error) => error.message);
  }

  async function read(request: Request, limits: Limits = {}): Promise<ReceivedBody["came"] | string> {
    const received = await receive(request, limits);
    return typeof received === "string" ? received : received.came;
  }

  const textOf = (result: ReceivedBody["came"] | string | undefined): string | undefined =>
    result instanceof Uint8Array ? Buffer.from(result).toString() : undefined;

  test("gives others a turn after each mebibyte of a body that is all there", async () => {
    const pieces = Array.from({ length: 64 }, () => new Uint8Array(128 * 1024));
    let turns = 0;
    const waitForTurn = (): Promise<void> => {
      turns += 1;
      return Promise.resolve();
    };
    await read(post(open, chunked(pieces)), { maxBytes: 1e7, waitForTurn });
    expect(turns).toBe(8);
  });

  test("does not copy a body that has arrived whole", async () => {
    const whole = new Uint8Array(600_000);
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(whole);
        controller.close();
      },
    });
    const result = await read(post({ ...open, "content-length": "600000" }, stream));
    expect(result === whole).toBe(true);
  });

  test("asks the limits before it waits for a body that has not come with its head, and before it decodes one", async () => {
    const askedFor = async (headers: Record<string, string>, body: BodyInit, rules = limited) => {
      const asked: BodyStep[] = [];
      await read(post({ ...open, ...headers }, body), { asked, rules });
      return asked;
    };
    expect(await askedFor({ "content-length": "65536" }, "x".repeat(65_536))).toEqual([]);
    expect(await askedFor({ "content-length": "65537" }, "x".repeat(65_537))).toEqual(["wait"]);
    expect(await askedFor({}, chunked(["{}"]))).toEqual(["wait"]);
    expect(await askedFor({ "content-length": "22", "content-encoding": "gzip" }, gzipSync("{}"))).toEqual([
      "decoding",
    ]);
    expect(await askedFor({ "content-type": "text/plain" }, chunked(["a"]), free)).toEqual(["wait"]);
  });

  test.each<[string, (string | Uint8Array)[]]>([
    ["a byte order mark that comes in parts", [Buffer.from([0xef]), Buffer.from([0xbb]), Buffer.from([0xbf, 0x7b])]],
    ["blanks in a hundred thousand chunks", [...Array<string>(100_000).fill("\f"), "{"]],
  ])("holds %s, whatever the type", async (_, chunks) => {
    const whole = Buffer.concat(chunks.map((chunk) => Buffer.from(chunk)));
    for (const rules of [free, limited]) {
      const result = await read(post({ "content-type": "text/plain" }, chunked(chunks)), { rules });
      expect(Buffer.compare(result as Uint8Array, whole)).toBe(0);
    }
  });

  test("takes the budget for blanks too", async () => {
    const blanks = post({ "content-type": "text/plain" }, chunked(["   ", "  ", "{"]));
    expect(await read(blanks, { budget: 4 })).toBe("too_many_bytes_held");
  });

  describe("decodes, for a key with limits,", () => {
    const decoded = (encoding: string, bytes: Uint8Array, limits: Limits = {}): Promise<ReceivedBody | string> =>
      receive(post({ "content-encoding": encoding }, chunked([bytes])), { rules: limited, ...limits });
    const text = '{"a":1}';

    test("short bodies without waiting for each other", async () => {
      const received: (ReceivedBody | string)[] = [];
      for (let count = 0; count < 50; count++)
        void decoded("gzip", Buffer.from(text)).then((one) => received.push(one));
      await passTicks();
      expect(received).toHaveLength(50);
    });

    test("no more than the budget", async () => {
      const bytes = gzipSync(JSON.stringify({ a: "x".repeat(1992) }));
      expect(await decoded("gzip", bytes, { budget: 2000 + bytes.length })).toMatchObject({ isEncoded: true });
      expect(await decoded("gzip", bytes, { budget: 1999 + bytes.length })).toBe("too_many_bytes_held");
    });

    // Each empty member of a gzip would cost a hundred times as much if it was decoded by itself.
    test.each<[string, Uint8Array, Uint8Array]>([
      ["gzip", gzipSync(text), gzipSync("")],
      ["zstd", zstdCompressSync(text), zstdCompressSync("")],
      ["deflate", new Uint8Array(), Buffer.from([0, 0, 0, 0xff, 0xff])],
    ])("a %s with a hundred thousand empty parts in little time of the event loop", async (encoding, first, empty) => {
      const last = encoding === "deflate" ? deflateRawSync(text) : new Uint8Array();
      const bytes = Buffer.concat([first, Buffer.alloc(100_000 * empty.length, empty), last]);
      const before = process.threadCpuUsage();
      const received = await decoded(encoding, bytes, { maxBytes: 1e7 });
      const { user, system } = process.threadCpuUsage(before);
      expect(textOf((received as ReceivedBody).plain)).toBe(text);
      expect((user + system) / 1000).toBeLessThan(300);
    });

    test("no zstd that wants a window of more than 8 MiB", async () => {
      const frame = (windowLog: number) =>
        Buffer.from([
          0x28,
          0xb5,
          0x2f,
          0xfd,
          0,
          (windowLog - 10) << 3,
          (text.length << 3) | 1,
          0,
          0,
          ...Buffer.from(text),
        ]);
      expect(textOf(((await decoded("zstd", frame(23))) as ReceivedBody).plain)).toBe(text);
      expect(await decoded("zstd", frame(24))).toBe("unsupported_body");
    });
  });
});
