import { expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { createDecodedStream } from "../../../src/proxy/stream/body-kind.ts";
import { pollUntilStable } from "../../support/poll-until.ts";

const megabyte = 1024 * 1024;

test.each([
  ["gzip", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
])("of 40 MiB that the backend sends as %s, no more is decompressed than its client takes", async (name, compress) => {
  const compressed = new Uint8Array(compress(Buffer.alloc(40 * megabyte, "x")));
  Bun.gc(true);
  const before = heapStats().heapSize;
  const reader = createDecodedStream(new Blob([compressed]).stream(), [name])?.getReader();
  let received = (await reader?.read())?.value?.length ?? 0;
  // The decoder has a thread of its own.
  await pollUntilStable(() => heapStats().heapSize, 300);
  Bun.gc(true);
  expect(heapStats().heapSize - before).toBeLessThan(4 * megabyte);
  for (;;) {
    const { done = true, value } = (await reader?.read()) ?? {};
    if (done) break;
    received += value?.length ?? 0;
  }
  expect(received).toBe(40 * megabyte);
});

// Of gzip and zlib's format, only a checksum is missing at the later places.
test.each([
  ["gzip", gzipSync, 8],
  ["deflate", deflateSync, 4],
  ["br", brotliCompressSync, 0],
])("a body in %s (by %p) that ends too soon fails, wherever it ends", async (name, compress, checksumLength) => {
  const text = "half an answer is no answer ".repeat(3);
  const compressed = new Uint8Array(compress(text));
  const decode = (length: number): Promise<string> =>
    new Response(createDecodedStream(new Blob([compressed.subarray(0, length)]).stream(), [name])).text();
  for (let length = 1; length < compressed.length - checksumLength; length++) {
    expect(await decode(length).catch(() => "failed")).toBe("failed");
  }
  expect(await decode(compressed.length)).toBe(text);
});
