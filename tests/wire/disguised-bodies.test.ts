import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { connectRaw } from "../support/raw-client.ts";
import { errorOf, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";
import { shared } from "../support/shared.ts";

const megabyte = 1024 * 1024;
const paths = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/messages", "/v1/responses"] as const;

const gate = shared(() =>
  startTollgateWithKeys({
    PROXY_HAN_GUARD: "off",
    MAX_OUTPUT_TOKENS: "300",
    MAX_BODY_BYTES: String(megabyte),
    PROXY_STREAM_READ_TIMEOUT: "0.3",
  }),
);
/** Keys with a limit of tokens, of requests, and with models. */
const keys = new Map<string, string>();
beforeAll(async () => {
  const fields = {
    tokens: { tokens_per_day: 1_000_000_000 },
    requests: { requests_per_minute: 100_000 },
    models: { allowed_models: ["m"] },
  };
  for (const [name, rules] of Object.entries(fields)) keys.set(name, (await gate.createKey(rules)).key);
});
beforeEach(() => gate.backend.clear());

const keyNamed = (name: string): string => keys.get(name) ?? gate.key;

const bytesOf = (body: string | Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(body as string));

interface Sent {
  path?: string;
  /** Of a key above; any other: the one without limits. */
  key?: string;
  headers?: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer>;
}

const send = ({ path = paths[0], key = "", headers = {}, body }: Sent): Promise<Response> =>
  gate.send(path, bytesOf(body), { key: keyNamed(key), headers });

interface Received {
  encoding: string | undefined;
  contentType: string | undefined;
  length: string | undefined;
  bytes: Buffer;
}

async function received(sent: Sent): Promise<Received> {
  gate.backend.clear();
  await (await send(sent)).bytes();
  const request = await gate.backend.nextRequest();
  const bytes = Buffer.from(request.body());
  return {
    encoding: request.header("content-encoding"),
    contentType: request.header("content-type"),
    length: request.header("content-length"),
    bytes,
  };
}

const json = '{"model":"m","max_tokens":5000}';
const capped = '{"model":"m","max_tokens":300}';
const everyKey = ["none", "tokens", "requests", "models"];
const limitedKeys = everyKey.slice(1);

const blanks: [string, string][] = [
  ["a byte order mark", "\uFEFF"],
  ["a byte order mark after a blank", " \uFEFF"],
  ["a form feed", "\f"],
  ["a vertical tab", "\v"],
  ["a no-break space", "\u00A0"],
  ["an ideographic space", "\u3000"],
  ["a line separator", "\u2028"],
  ["a control character", "\u001C"],
];

describe("what stands before or after a body does not keep its cap away", () => {
  for (const type of ["application/json", "text/plain", "application/x-www-form-urlencoded"]) {
    test.each(blanks)(`%s, as ${type}`, async (_, blank) => {
      for (const key of everyKey) {
        const body = `${blank}${json}${blank}`;
        const { bytes } = await received({ key, headers: { "content-type": type }, body });
        expect(bytes.toString()).toBe(`${blank}${capped}${blank}`);
      }
    });
  }

  test.each(everyKey)("a thousand blank chunks, for a key with limits of %s", async (key) => {
    const client = await connectRaw(gate.url);
    client.send(
      `POST /v1/completions HTTP/1.1\r\nHost: h\r\nx-api-key: ${keyNamed(key)}\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    for (let count = 0; count < 1000; count += 1) client.send("1\r\n \r\n");
    client.send(`${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`);
    expect((await client.head()).status).toBe(200);
    client.close();
    expect(
      Buffer.from((await gate.backend.nextRequest()).body())
        .toString()
        .trim(),
    ).toBe(capped);
  });

  test.each(everyKey)("more blanks than a body may have get 413, for a key with limits of %s", async (key) => {
    const body = new Blob([" ".repeat(megabyte + 1), json]).stream();
    const headers = { "content-type": "text/plain" };
    const response = await gate.send(paths[1], body, { key: keyNamed(key), headers });
    expect(await errorOf(response)).toMatchObject({ status: 413, code: "body_too_large" });
  });
});

describe("the name of an encoding that a body does not have keeps no cap away", () => {
  const names = ["gzip", "br", "identity", "x-unknown", "gzip, gzip", "UTF-8", "gzip,gzip,gzip,gzip"];
  const types = ["application/json", "text/plain"];
  test.each(names.flatMap((name) => types.map((type): [string, string] => [name, type])))(
    "%s, as %s",
    async (name, type) => {
      for (const key of everyKey) {
        const sent = await received({ key, headers: { "content-encoding": name, "content-type": type }, body: json });
        expect(sent.bytes.toString()).toBe(capped);
        expect(sent.length).toBe(String(capped.length));
        // A backend that decodes must not read in it what Tollgate did not.
        if (key !== "none" && name !== "identity") expect(sent.encoding).toBeUndefined();
      }
    },
  );

  test("in two headers", async () => {
    for (const key of everyKey) {
      gate.backend.clear();
      const client = await connectRaw(gate.url);
      client.send(
        `POST /v1/completions HTTP/1.1\r\nHost: h\r\nx-api-key: ${keyNamed(key)}\r\nContent-Type: text/plain\r\nContent-Type: text/html\r\nContent-Encoding: identity\r\nContent-Encoding: gzip\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
      );
      expect((await client.head()).status).toBe(200);
      client.close();
      expect(Buffer.from((await gate.backend.nextRequest()).body()).toString()).toBe(capped);
    }
  });
});

type Encode = (text: string) => Uint8Array;
const gzipTwice: Encode = (text) => gzipSync(gzipSync(text));
const encodings: [name: string, encode: Encode][] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
  [" GZip ,, Identity", gzipSync],
  ["gzip, gzip", gzipTwice],
  ["gzip, br", (text) => brotliCompressSync(gzipSync(text))],
];

describe("a body that really is encoded", () => {
  test.each(encodings)("as %s is decoded and edited for every key", async (name, encode) => {
    for (const key of everyKey) {
      for (const path of paths) {
        const headers = { "content-encoding": name, "content-type": "text/plain" };
        const sent = await received({ key, path, headers, body: bytesOf(encode(json)) });
        expect(sent.bytes.toString()).toBe(capped);
        expect([sent.encoding, sent.length]).toEqual([undefined, String(capped.length)]);
      }
    }
  });

  test.each(encodings)("as %s is forwarded as it came if no edit is due", async (name, encode) => {
    const body = bytesOf(encode(capped));
    for (const key of everyKey) {
      const sent = await received({ key, headers: { "content-encoding": name }, body });
      expect(new Uint8Array(sent.bytes)).toEqual(body);
      expect([sent.encoding, sent.length]).toEqual([name.trim(), String(body.length)]);
    }
  });

  test("as brotli of a length at which it begins like a blank and an opening brace", async () => {
    const body = bytesOf(brotliCompressSync(json.padEnd(124)));
    expect(body.subarray(0, 2)).toEqual(new Uint8Array([0x1b, 0x7b]));
    const headers = { "content-encoding": "br" };
    for (const key of everyKey) expect((await received({ key, headers, body })).bytes.toString().trim()).toBe(capped);
  });

  test("is larger than MAX_BODY_BYTES for a key without limits, and still forwarded", async () => {
    const body = new Uint8Array(Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.alloc(2 * megabyte)]));
    const response = await send({ path: paths[2], headers: { "content-encoding": "gzip" }, body });
    expect(response.status).not.toBe(413);
    expect((await gate.backend.nextRequest()).bodyBytes).toBe(body.length);
  });

  test("names its model inside", async () => {
    const headers = { "content-encoding": "gzip" };
    const response = await send({ key: "models", headers, body: bytesOf(gzipSync('{"model":"other"}')) });
    expect(await errorOf(response)).toMatchObject({ status: 403, code: "model_not_allowed" });
  });

  test("reserves the tokens of what is inside", async () => {
    const { id, key } = await gate.createKey({ tokens_per_minute: 1_000_000 });
    const text = `{"model":"m","max_tokens":200,"stream":true,"prompt":"${"x".repeat(30_000)}"}`;
    const headers = { "content-encoding": "gzip" };
    const client = await gate.sendRaw("/v1/completions", gzipSync(text), { key, headers, script: "gap=forever@1" });
    await client.nextEvent();
    expect((await gate.getKey(id)).used["tokens_per_minute"]).toBe(Math.floor(text.length / 3) + 200);
    client.reset();
  });
});

test.each(limitedKeys)("a body cannot hide behind what was read of one before it, for a key of %s", async (key) => {
  // The first is read up to a `tools` in the middle of a block; in the second, the same text stands behind that block too.
  const [tools, thinking, next] = ['"tools":1,"p":"', '","thinking":{"y":1,', '"tools":1},"x":{'];
  const block = tools + "p".repeat(8192 - (tools + thinking + next).length) + thinking + next;
  const rest = `"z":1},"model":"other","max_tokens":5000,"q":"${"q".repeat(8192)}"}`;
  const [path, names] = ["/v1/messages", '"tools":1,'.repeat(7)];
  await (await send({ key, path, body: `{"model":"m",${block}${rest}` })).bytes();
  gate.backend.clear();
  const response = await send({ key, path, body: `{"model":"m","w":{${names}"u":1},${block}${next}${rest}` });
  if (key === "models") expect(await errorOf(response)).toMatchObject({ status: 400, code: "member_not_allowed" });
  else expect(Buffer.from((await gate.backend.nextRequest()).body()).toString()).toContain('"max_tokens":300');
});

describe("a content type in which a backend would read something else", () => {
  // As a form it has the model `other`.
  const polyglot = '{"model":"m","user":"&model=other&user="}';
  const types = [
    "application/x-www-form-urlencoded",
    "text/plain",
    "application/json; charset=shift_jis",
    "application/json; charset=utf-8; x=y",
    "application/json, application/x-www-form-urlencoded",
    "application/vnd.x+json",
  ];

  test.each(types)("becomes that of JSON for a key with limits: %s", async (type) => {
    for (const [key, sent] of [
      ["models", "application/json"],
      ["tokens", "application/json"],
      ["none", type],
    ] as const) {
      const { contentType, bytes } = await received({ key, headers: { "content-type": type }, body: polyglot });
      expect([contentType, bytes.toString()]).toEqual([sent, polyglot]);
    }
  });

  test.each(["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf8"'])(
    "stays as it is: %s",
    async (type) => {
      const { contentType } = await received({ key: "models", headers: { "content-type": type }, body: polyglot });
      expect(contentType).toBe(type);
    },
  );
});

describe("the stream timeout bounds a stream", () => {
  const stream = '{"model":"m","stream":true}';
  const bodies: [string, string, Record<string, string>, string | Uint8Array<ArrayBuffer>][] = [
    ["after a byte order mark", "none", { "content-type": "text/plain" }, `\uFEFF${stream}`],
    ["after a form feed", "none", { "content-type": "text/plain" }, `\f${stream}`],
    ["of an encoding that is none", "none", { "content-encoding": "x", "content-type": "text/plain" }, stream],
    ["that is compressed", "tokens", { "content-encoding": "gzip" }, bytesOf(gzipSync(stream))],
  ];
  test.each(bodies)("%s", async (_, key, headers, body) => {
    const response = await send({ key, headers: { ...headers, "x-simulate": "slow-head=forever" }, body });
    expect(await errorOf(response)).toMatchObject({ status: 504, code: "upstream_timeout" });
  });
});

describe("what cannot be read as one JSON object", () => {
  const gzip = { "content-encoding": "gzip" };
  const undecodable: [string, Record<string, string>, Uint8Array<ArrayBuffer>][] = [
    ["an unknown encoding", { "content-encoding": "compress" }, bytesOf(gzipSync(json))],
    ["more encodings than three", { "content-encoding": "gzip,gzip,gzip,gzip" }, bytesOf(gzipTwice(json))],
    ["another encoding", { "content-encoding": "br" }, bytesOf(gzipSync(json))],
    ["fewer encodings than named", { "content-encoding": "gzip, gzip" }, bytesOf(gzipSync(json))],
    ["a cut gzip", gzip, bytesOf(gzipSync(json).subarray(0, -3))],
    ["a broken gzip", gzip, bytesOf(gzipSync(json).fill(0xff, 12))],
  ];
  const bodies: [string, Record<string, string>, string | Uint8Array<ArrayBuffer>][] = [
    ["an array", {}, `[${json}]`],
    ["a string", {}, '"x"'],
    ["cut JSON", {}, json.slice(0, -1)],
    ["two objects", {}, `${json}${json}`],
    ["a comment", {}, `/**/${json}`],
    ["a trailing comma", {}, '{"model":"m",}'],
    ["text", { "content-type": "text/plain" }, "model=m&max_tokens=5000"],
    ["blanks", { "content-type": "text/plain" }, " \f\r\n"],
    ["an array that is not UTF-8", {}, new Uint8Array([0x5b, 0x22, 0xff, 0x22, 0x5d])],
    ["a multipart form", { "content-type": "multipart/form-data; boundary=x" }, `--x\r\n\r\n${json}\r\n--x--\r\n`],
    ["JSON as multipart", { "content-type": " Multipart/Mixed" }, json],
    ["an encoding that is not named", {}, bytesOf(gzipSync(json))],
    ...undecodable,
    ["an encoded array", gzip, bytesOf(gzipSync("[]"))],
    ["an encoded nothing", gzip, bytesOf(gzipSync(""))],
  ];

  test.each(bodies)("%s gets 415 for a key with limits or models", async (_, headers, body) => {
    for (const key of limitedKeys) {
      for (const path of paths) {
        const response = await send({ key, path, headers, body });
        expect(response.headers.get("accept-encoding")).toBe("gzip, deflate, br, zstd");
        expect(await errorOf(response)).toMatchObject({
          status: 415,
          type: "invalid_request_error",
          code: "unsupported_body",
        });
      }
    }
    // It is asked for its models now and then.
    expect(gate.backend.requests().filter(({ method }) => method === "POST")).toEqual([]);
  });

  test.each(bodies)("%s is forwarded for a key without, where bodies name nothing stored", async (_, headers, body) => {
    const sent = await received({ path: paths[2], headers, body });
    expect(new Uint8Array(sent.bytes)).toEqual(bytesOf(body));
    expect(sent.encoding).toBe(headers["content-encoding"]);
  });

  test.each(undecodable)("%s gets 415 under /v1/responses for a key without too", async (_, headers, body) => {
    const response = await send({ path: "/v1/responses", headers, body });
    expect(await errorOf(response)).toMatchObject({ status: 415, code: "unsupported_body" });
  });

  test.each(["//v1//chat/completions", "/v1/messages/"])("is found at %s too", async (path) => {
    const response = await send({ key: "tokens", path, body: "[]" });
    expect(await errorOf(response)).toMatchObject({ status: 415, code: "unsupported_body" });
  });

  test("is none of Tollgate's business on another path, unless it is encoded", async () => {
    const encoded = { path: "/v1/anything", headers: gzip, body: bytesOf(gzipSync(json)) };
    for (const key of limitedKeys) {
      const error = await errorOf(await send({ key, ...encoded }));
      expect(error).toMatchObject({ status: 415, code: "unsupported_body" });
    }
    expect((await received(encoded)).encoding).toBe("gzip");
    for (const key of ["tokens", "requests"]) {
      const text = { key, path: "/v1/anything", headers: { "content-encoding": "identity" }, body: "[]" };
      expect((await received(text)).bytes.toString()).toBe("[]");
      expect((await received({ ...encoded, key, body: "" })).bytes.toString()).toBe("");
    }
    const response = await send({ key: "models", path: "/v1/anything", body: "[]" });
    expect(await errorOf(response)).toMatchObject({ status: 403, code: "model_not_allowed" });
  });

  test("is not a body that is empty", async () => {
    for (const key of limitedKeys) {
      gate.backend.clear();
      await (await send({ key, headers: gzip, body: "" })).bytes();
      expect((await gate.backend.nextRequest()).bodyBytes).toBe(0);
    }
  });
});

describe("an object that is not UTF-8 gets 400 for every key", () => {
  const utf16be = Buffer.from(json, "utf16le").swap16();
  const marked = Buffer.concat([Buffer.from([0xfe, 0xff]), utf16be]);
  test.each<[string, Buffer]>([
    ["little-endian", Buffer.from(json, "utf16le")],
    ["little-endian after a mark", Buffer.from(`\uFEFF${json}`, "utf16le")],
    ["little-endian after a blank", Buffer.from(` ${json}`, "utf16le")],
    ["big-endian", utf16be],
    ["big-endian after a mark", marked],
    ["of 32 bits", Buffer.from(Array.from(json, (letter) => [0, 0, 0, letter.charCodeAt(0)]).flat())],
    // Python's engines read it.
    ["a surrogate", Buffer.from(json.replace("{", '{"user":"\xed\xa0\x80",'), "latin1")],
    ["Latin-1 after a blank", Buffer.from(` {"user":"\xe9",${json.slice(1)}`, "latin1")],
  ])("%s", async (_, bytes) => {
    for (const key of everyKey) {
      for (const type of ["application/json; charset=utf-16", "text/plain"]) {
        const response = await send({ key, headers: { "content-type": type }, body: bytesOf(bytes) });
        expect(await errorOf(response)).toMatchObject({ status: 400, code: "invalid_json" });
      }
    }
    const headers = { "content-encoding": "gzip" };
    for (const key of everyKey) {
      const encoded = await send({ key, headers, body: bytesOf(gzipSync(bytes)) });
      expect(await errorOf(encoded)).toMatchObject({ status: 400, code: "invalid_json" });
    }
  });
});

describe("a body that decodes to more than MAX_BODY_BYTES gets 413", () => {
  const zeros = Buffer.alloc(40 * megabyte);
  const text = zeros.toString("latin1");
  const inner = gzipSync("");
  test.each<[string, Uint8Array]>([
    ["gzip", gzipSync(zeros)],
    ["deflate", deflateRawSync(zeros)],
    ["br", brotliCompressSync(zeros)],
    ["zstd", zstdCompressSync(zeros)],
    ["gzip, gzip", gzipTwice(text)],
    // Decoded once it is too large, decoded twice it is nothing.
    ["gzip, gzip", gzipSync(Buffer.alloc(2 * megabyte, inner))],
  ])("as %s", async (name, body) => {
    const headers = { "content-encoding": name };
    for (const [key, path] of [
      ["tokens", paths[0]],
      ["none", "/v1/responses"],
    ] as const) {
      const response = await send({ key, path, headers, body: bytesOf(body) });
      expect(await errorOf(response)).toMatchObject({ status: 413, code: "body_too_large" });
    }
    expect(gate.backend.requests()).toEqual([]);
    // Where nothing needs to be read of it.
    expect(new Uint8Array((await received({ headers, body: bytesOf(body) })).bytes)).toEqual(bytesOf(body));
  });
});
