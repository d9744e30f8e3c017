import { expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { createDecodedStream } from "../../../src/proxy/usage/decompress.ts";
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
