import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import solid from "vite-plugin-solid";

const folder = import.meta.dirname;

export default defineConfig({
  root: folder,
  plugins: [solid(), precompress(join(folder, "dist"))],
  build: {
    // Browsers with light-dark() and CSS nesting. For older ones, the build would rewrite both and break the theme switch.
    target: ["chrome125", "edge125", "firefox128", "safari18"],
    // Data URLs would require an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": process.env["TOLLGATE_URL"] ?? "http://127.0.0.1:8080" } },
});

/** Writes `.br` and `.gz` files at the best level next to each compressible file, so that the server never compresses. */
function precompress(dist: string): Plugin {
  return {
    name: "precompress",
    apply: "build",
    closeBundle(): void {
      for (const name of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
        if (!/\.(js|css|html|svg)$/.test(name)) continue;
        const file = join(dist, name);
        const bytes = readFileSync(file);
        writeIfSmaller(`${file}.br`, brotliCompressSync(bytes), bytes.length);
        writeIfSmaller(`${file}.gz`, gzipSync(bytes, { level: 9 }), bytes.length);
      }
    },
  };
}

function writeIfSmaller(file: string, bytes: Buffer, limit: number): void {
  if (bytes.length < limit) writeFileSync(file, bytes);
}
