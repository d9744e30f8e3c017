import { generateLoad } from "./generator.ts";
import type { LoadSpec } from "./spec.ts";

// The load generator as a process of its own, so that it can be pinned to a core: the spec on standard input, the result on standard output.
const spec = (await Bun.stdin.json()) as LoadSpec;
console.log(JSON.stringify(await generateLoad(spec)));
process.exit(0);
