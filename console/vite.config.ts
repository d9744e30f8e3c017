import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";
import solid from "vite-plugin-solid";
import { renderHandbook } from "./handbook.ts";

const folder = import.meta.dirname;

export default defineConfig({
  root: folder,
  plugins: [renderHandbook(), solid(), shipFont(), precompress(join(folder, "dist"))],
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

/** Loads the font before the style sheet asks for it, and ships its licence. */
function shipFont(): Plugin {
  return {
    name: "ship-font",
    apply: "build",
    generateBundle(): void {
      const licence = join(folder, "../node_modules/@fontsource-variable/figtree/LICENSE");
      this.emitFile({ type: "asset", fileName: "figtree-license.txt", source: readFileSync(licence) });
    },
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle }) =>
        Object.keys(bundle ?? {})
          .filter((name) => name.endsWith(".woff2"))
          .map((name) => ({
            tag: "link",
            attrs: { rel: "preload", as: "font", type: "font/woff2", crossorigin: true, href: `/${name}` },
            injectTo: "head-prepend" as const,
          })),
    },
  };
}

/** Writes `.br` and `.gz` files at the best level next to each compressible file, so that the server never compresses. */
function precompress(dist: string): Plugin {
  return {
    name: "precompress",
    apply: "build",
    closeBundle(): void {
      for (const name of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
        if (!/\.(js|css|html|svg|txt)$/.test(name)) continue;
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
