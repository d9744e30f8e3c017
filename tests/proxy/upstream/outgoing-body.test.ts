import { describe, expect, test } from "bun:test";
import { outgoingBodyOf } from "../../../src/proxy/request/rewrite-body.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("the outgoing body", () => {
  test("of one short piece is that piece", () => {
    const piece = bytesOf("{}");
    expect(outgoingBodyOf([piece])).toEqual({ body: piece, length: 2 });
    expect(outgoingBodyOf([piece]).body).toBe(piece);
  });

  test("of several short pieces is whole", () => {
    expect(outgoingBodyOf(["a", "", "bc"].map(bytesOf))).toEqual({ body: bytesOf("abc"), length: 3 });
    expect(outgoingBodyOf([])).toEqual({ body: new Uint8Array(), length: 0 });
  });

  test("of long pieces is a stream of views, of which none is read ahead", async () => {
    const long = new Uint8Array(1_000_000).fill(7);
    const { body, length } = outgoingBodyOf([bytesOf("a"), long, bytesOf("")]);
    if (!(body instanceof ReadableStream)) throw new Error("The body is not a stream");
    const chunks = await Array.fromAsync(body as ReadableStream<Uint8Array>);
    expect(length).toBe(1_000_001);
    expect(Buffer.concat(chunks).equals(Buffer.concat([bytesOf("a"), long]))).toBe(true);
    expect(chunks.slice(1).every((chunk) => chunk.buffer === long.buffer)).toBe(true);
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThanOrEqual(128 * 1024);
  });
});
