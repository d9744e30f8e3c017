import { generateLoad } from "./generator.ts";
import type { LoadSpec } from "./spec.ts";

// The load generator in its own process, so that it can be pinned to a core. Reads the spec from standard input and writes
// the result to standard output.
const spec = (await Bun.stdin.json()) as LoadSpec;
console.log(JSON.stringify(await generateLoad(spec)));
process.exit(0);
