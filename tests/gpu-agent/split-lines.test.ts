import { expect, test } from "bun:test";
import { readLines } from "../../src/gpu-agent/split-lines.ts";

function bytes(...chunks: (string | Uint8Array)[]) {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
      controller.close();
    },
  });
}

test("lines are whole wherever the chunks end", async () => {
  expect(await Array.fromAsync(readLines(bytes("0, N", "VIDIA\n1, NVI", "DIA\n")))).toEqual(["0, NVIDIA", "1, NVIDIA"]);
});

test("line feeds with carriage returns end a line alike", async () => {
  expect(await Array.fromAsync(readLines(bytes("one\r", "\ntwo\r\n\r\n")))).toEqual(["one", "two", ""]);
});

test("a character that two chunks share is one character", async () => {
  const euro = new TextEncoder().encode("€\n");
  expect(await Array.fromAsync(readLines(bytes(euro.slice(0, 1), euro.slice(1))))).toEqual(["€"]);
});

test("a line that was never finished is dropped, since its last number may be cut", async () => {
  expect(await Array.fromAsync(readLines(bytes("0, GPU, 100\n1, GPU, 1")))).toEqual(["0, GPU, 100"]);
});

test("a line without end does not fill the memory", async () => {
  const [line] = await Array.fromAsync(readLines(bytes(...Array<string>(100).fill("x".repeat(1000)), "\n")));
  expect(line?.length).toBeLessThan(10_000);
});
