import { describe, expect, test } from "bun:test";
import { findText, findWholeBody, isJson, isRewritable } from "../../../src/proxy/request/body.ts";

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

describe("findWholeBody", () => {
  const chunked = (chunks: string[]): ReadableStream<Uint8Array> => {
    const encoder = new TextEncoder();
    return new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
        controller.close();
      },
    });
  };

  test("reads a body of unknown length up to the limit", async () => {
    const bytes = await findWholeBody(post({}, chunked(["ab", "cd"])), 4);
    expect(new TextDecoder().decode(bytes)).toBe("abcd");
    expect(await findWholeBody(post({}, chunked(["ab", "cde"])), 4)).toBeUndefined();
  });

  test("reads a body whose declared length is the limit", async () => {
    expect(await findWholeBody(post({ "content-length": "4" }, "four"), 4)).toHaveLength(4);
    expect(await findWholeBody(post({ "content-length": "4" }, "four"), 3)).toBeUndefined();
  });

  test("refuses a declared length over the limit without reading", async () => {
    const request = post({ "content-length": "5" }, chunked(["abcde"]));
    expect(await findWholeBody(request, 4)).toBeUndefined();
    expect(request.bodyUsed).toBe(false);
  });

  test("reads a missing body as empty", async () => {
    expect(await findWholeBody(post({}, null))).toEqual(new Uint8Array());
  });
});

describe("findText", () => {
  test("returns text that encodes to the same bytes, a byte order mark included", () => {
    const bytes = new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d, 0xf0, 0x9f, 0x98, 0x80]);
    expect(new TextEncoder().encode(findText(bytes))).toEqual(bytes);
  });

  test("finds none in bytes that are not UTF-8", () => expect(findText(new Uint8Array([0x7b, 0xff]))).toBeUndefined());
});
