import { describe, expect, test } from "bun:test";
import { outgoingBodyOf } from "../../../src/proxy/request/body.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("the outgoing body", () => {
  test("of one short piece is that piece", () => {
    const piece = bytesOf("{}");
    const { open, length } = outgoingBodyOf([piece]);
    expect(length).toBe(2);
    expect(open()).toBe(piece);
  });

  test.each([0, 100, 32_000, 33_000, 2_000_000, 3_000_000])(
    "of several pieces, one of %p bytes, is whole, and is read again from its start",
    async (long) => {
      const pieces = [bytesOf("a"), bytesOf(""), new Uint8Array(long).fill(7), bytesOf("bc")];
      const { open, length } = outgoingBodyOf(pieces);
      const whole = new Uint8Array(Buffer.concat(pieces));
      for (const body of [open(), open()]) expect(await new Response(body).bytes()).toEqual(whole);
      expect(length).toBe(long + 3);
    },
  );

  test("of no piece is empty", () => {
    expect(outgoingBodyOf([]).open()).toEqual(new Uint8Array());
  });

  test("of long pieces is a stream of views, of which none is read ahead", async () => {
    const long = new Uint8Array(3_000_000).fill(7);
    const { open, length } = outgoingBodyOf([bytesOf("a"), long, bytesOf("")]);
    const body = open();
    if (!(body instanceof ReadableStream)) throw new Error("The body is not a stream");
    const chunks = await Array.fromAsync(body as ReadableStream<Uint8Array>);
    expect(length).toBe(3_000_001);
    expect(Buffer.concat(chunks).equals(Buffer.concat([bytesOf("a"), long]))).toBe(true);
    expect(chunks.slice(1).every((chunk) => chunk.buffer === long.buffer)).toBe(true);
    expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThanOrEqual(128 * 1024);
  });
});
