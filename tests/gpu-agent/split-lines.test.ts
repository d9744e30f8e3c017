import { expect, test } from "bun:test";
import { splitLines } from "../../src/gpu-agent/gpu-tool.ts";

function bytes(...chunks: (string | Uint8Array)[]) {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
      controller.close();
    },
  });
}

test("strips carriage returns", async () => {
  expect(await Array.fromAsync(splitLines(bytes("one\r", "\ntwo\r\n\r\n")))).toEqual(["one", "two", ""]);
});

test("joins a character that is split between two chunks", async () => {
  const euro = new TextEncoder().encode("€\n");
  expect(await Array.fromAsync(splitLines(bytes(euro.slice(0, 1), euro.slice(1))))).toEqual(["€"]);
});

test("drops an unfinished line, whose last number may be cut", async () => {
  expect(await Array.fromAsync(splitLines(bytes("0, GPU, 100\n1, GPU, 1")))).toEqual(["0, GPU, 100"]);
});

test("bounds the memory for a line without an end", async () => {
  const [line] = await Array.fromAsync(splitLines(bytes(...Array<string>(100).fill("x".repeat(1000)), "\n")));
  expect(line?.length).toBeLessThan(10_000);
});
