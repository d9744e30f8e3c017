import { expect, test } from "bun:test";
import { once } from "node:events";
import { createGunzip, gunzipSync } from "node:zlib";
import { gzipPieces } from "./response-body.ts";

const pieces = ["data: 한국어\n\n", Uint8Array.from([0, 255, 7]), "x".repeat(100_000)];

test("compressed pieces form one gzip member with all the data", () => {
  const compressed = [...gzipPieces<never>(pieces)];
  const plain = Buffer.concat(pieces.map((piece) => Buffer.from(piece as string)));
  expect(gunzipSync(Buffer.concat(compressed)).equals(plain)).toBe(true);
});

test("each piece can be decompressed before the next one arrives", async () => {
  const pause = Symbol("pause");
  const gunzip = createGunzip();
  const read: string[] = [];
  for (const part of gzipPieces(["first", pause, "second", pause])) {
    if (typeof part !== "symbol") gunzip.write(part);
    else read.push(String((await once(gunzip, "data"))[0]));
  }
  expect(read).toEqual(["first", "second"]);
});
