import { describe, expect, test } from "bun:test";
import { isJson, isRewritable, type ReadBody, readBody } from "../../../src/proxy/request/body.ts";
import { createHeldBytes } from "../../../src/proxy/request/held-bytes.ts";
import type { StartReadTimeout } from "../../../src/proxy/upstream/read-timeout.ts";

const post = (headers: Record<string, string>, body: BodyInit | null = "{}", method = "POST"): Request =>
  new Request("http://h/v1/x", { method, headers, body });

describe("isJson", () => {
  test.each([
    "application/json",
    "Application/JSON; charset=utf-8",
    " application/json ;x=y",
    "application/vnd.x+json",
  ])("accepts %s", (type) => expect(isJson(type)).toBe(true));
  test.each(["", "text/plain", "application/jsonl", "application/x-ndjson", "multipart/form-data; boundary=json"])(
    "rejects %s",
    (type) => expect(isJson(type)).toBe(false),
  );
});

describe("isRewritable", () => {
  test("is true for a POST with a JSON type or none", () => {
    expect(isRewritable(post({ "content-type": "application/json" }))).toBe(true);
    expect(isRewritable(new Request("http://h/", { method: "POST", body: new Uint8Array([123, 125]) }))).toBe(true);
    expect(isRewritable(post({ "content-type": "" }))).toBe(true);
  });

  test("is true whatever encoding is named, so that a name is not a way around a cap", () => {
    expect(isRewritable(post({ "content-type": "application/json", "content-encoding": "identity" }))).toBe(true);
    expect(isRewritable(post({ "content-type": "application/json", "content-encoding": "gzip" }))).toBe(true);
  });

  test("is false for other methods and types", () => {
    expect(isRewritable(post({ "content-type": "application/json" }, "{}", "PUT"))).toBe(false);
    expect(isRewritable(post({ "content-type": "audio/wav" }))).toBe(false);
  });
});

describe("readBody", () => {
  const noTimeout: StartReadTimeout = () => ({
    beginWait: () => {},
    beginClientWait: () => {},
    endWait: () => {},
    clear: () => {},
  });
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
    startReadTimeout?: StartReadTimeout;
    rewritesPath?: boolean;
    waitForTurn?: () => Promise<void>;
  }

  /** What was read, or the code of the refusal. */
  async function read(request: Request, limits: Limits = {}): Promise<ReadBody | string> {
    const { maxBytes = 1e6, budget = 1e9, startReadTimeout = noTimeout, rewritesPath = true } = limits;
    const held = createHeldBytes(budget, budget).open(1);
    const { waitForTurn = () => Promise.resolve() } = limits;
    const deps = { startReadTimeout, held, maxBytes, waitForTurn };
    return readBody(request, rewritesPath, deps).catch((error: Error) => error.message);
  }

  const textOf = (result: ReadBody | string): string | undefined =>
    result instanceof Uint8Array ? Buffer.from(result).toString() : undefined;

  test("holds a body of known, unknown or large size whole", async () => {
    expect(textOf(await read(post({ ...open, "content-length": "2" })))).toBe("{}");
    expect(textOf(await read(post(open, chunked(["{", "}"]))))).toBe("{}");
    const large = `{"x":"${"x".repeat(3_000_000)}"}`;
    const pieces = large.match(/.{1,100000}/g) ?? [];
    expect(textOf(await read(post(open, chunked(pieces)), { maxBytes: 1e7 }))).toBe(large);
    const declared = { ...open, "content-length": String(large.length) };
    expect(textOf(await read(post(declared, chunked(pieces)), { maxBytes: 1e7 }))).toBe(large);
  });

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

  test("reads a missing body as empty", async () => {
    expect(await read(new Request("http://h/", { method: "POST" }))).toEqual(new Uint8Array());
  });

  test("refuses a body over the limit, without reading one whose length is declared", async () => {
    const declared = post({ ...open, "content-length": "5" }, chunked(["abcde"]));
    expect(await read(declared, { maxBytes: 4 })).toBe("body_too_large");
    expect(declared.bodyUsed).toBe(false);
    expect(await read(post(open, chunked(["ab", "cde"])), { maxBytes: 4 })).toBe("body_too_large");
    expect(textOf(await read(post(open, chunked(["ab", "cd"])), { maxBytes: 4 }))).toBe("abcd");
  });

  test("refuses a body over the budget, without reading one whose length is declared", async () => {
    const declared = post({ ...open, "content-length": "5" }, chunked(["abcde"]));
    expect(await read(declared, { budget: 4 })).toBe("too_many_bytes_held");
    expect(declared.bodyUsed).toBe(false);
    expect(await read(post(open, chunked(["ab", "cde"])), { budget: 4 })).toBe("too_many_bytes_held");
  });

  test.each([{}, { "content-length": "5" }, { "content-length": "100000" }])(
    "gives up on a body that makes no progress (%p)",
    async (headers) => {
      const silent = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("{")) });
      const timesOut: StartReadTimeout = (_, onTimeout) => {
        const timer = setTimeout(onTimeout, 20);
        return { beginWait: () => {}, beginClientWait: () => {}, endWait: () => {}, clear: () => clearTimeout(timer) };
      };
      const request = post({ ...open, ...headers }, silent);
      expect(await read(request, { startReadTimeout: timesOut })).toBe("request_timeout");
    },
  );

  test.each(["application/x-www-form-urlencoded", "text/plain", "application/octet-stream"])(
    "holds %s that begins like a JSON object on a path that takes JSON",
    async (type) => {
      const body = chunked([" \r\n", "\t", '{"a":', "1}"]);
      expect(textOf(await read(post({ "content-type": type }, body)))).toBe(' \r\n\t{"a":1}');
    },
  );

  test.each<[string, Record<string, string>, string, boolean]>([
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, "a=1", true],
    ["an array", { "content-type": "text/plain" }, "[{}]", true],
    ["blanks", { "content-type": "text/plain" }, "  ", true],
    ["another path's", { "content-type": "text/plain" }, "{}", false],
    ["a multipart body", { "content-type": "multipart/form-data; boundary=x" }, "{}", true],
    ["an encoded body", { "content-type": "text/plain", "content-encoding": "gzip" }, "{}", true],
  ])("streams %s, every byte of it", async (_, headers, body, rewritesPath) => {
    const result = await read(post(headers, chunked([body.slice(0, 1), body.slice(1)])), { rewritesPath });
    expect(textOf(result)).toBeUndefined();
    expect(await new Response(result as ReadableStream).text()).toBe(body);
  });
});
