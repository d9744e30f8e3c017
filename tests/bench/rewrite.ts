/**
 * The cost of a rewrite relative to `JSON.parse` of the same body, with every rule on: `bun tests/bench/rewrite.ts`
 */
import { conversationBodies, vocabularies } from "./agent-bodies.ts";
import { runAtOnce } from "../../src/proxy/json/read.ts";
import { getEndpoint } from "../../src/proxy/rewrite/endpoint.ts";
import { createRequestBody } from "../../src/proxy/rewrite/watched-members.ts";
import { rewriteInSteps } from "../../src/proxy/rewrite/rewrite.ts";
import { createMemory } from "../../src/proxy/rewrite/current-rewriting.ts";
import { hash } from "../../src/proxy/request/conversation.ts";
import { needsOf } from "../../src/proxy/rewrite/rules.ts";
import { type RewriteSettings, rulesOf } from "../support/rewrite-rules.ts";

const rules: RewriteSettings = {
  servedModel: "live-model",
  reasoningModel: "live-model",
  rewriteUnknownModels: true,
  vendorPrefixes: ["vendor"],
  hanGuard: true,
  maxContextTokens: 202_752,
  maxOutputTokens: 16_384,
  forceStreamUsage: "continuous",
  clientRules: [],
};

type Memory = ReturnType<typeof createMemory>;

const nothing: Memory = { recall: undefined, knownBlocks: undefined };

/** At once, however long the body is. */
function rewriterOf(chosen: RewriteSettings, memory: Memory = nothing): (bytes: Uint8Array<ArrayBuffer>) => unknown {
  const endpoint = getEndpoint("/v1/chat/completions");
  const rewriteRules = { ...rulesOf(chosen), ...memory };
  const body = createRequestBody(endpoint, needsOf(rewriteRules));
  return (bytes) => runAtOnce(rewriteInSteps(endpoint, bytes, body, rewriteRules));
}

function measureMs(work: () => unknown): number {
  const start = performance.now();
  work();
  return performance.now() - start;
}

interface Costs {
  parse: number;
  /** Without detection of the conversation's language, whose cost depends little on the body's size. */
  unguarded: number;
  rewrite: number;
  /** With another latest message each time. */
  anew: number;
  /** The same, where what was found out about the other messages is remembered. */
  grown: number;
}

/** Measured alternately, so that other load on the machine affects all alike. */
function measureCosts(body: string, rounds: number): Costs {
  const samples: Costs[] = [];
  const bytes = new Uint8Array(Buffer.from(body));
  const unguarded = rewriterOf({ ...rules, hanGuard: false });
  const guarded = rewriterOf(rules);
  const remembering = rewriterOf(rules, createMemory(hash));
  remembering(bytes);
  for (let index = 0; index < rounds; index += 1) {
    samples.push({
      parse: measureMs(() => JSON.parse(body)),
      unguarded: measureMs(() => unguarded(bytes)),
      rewrite: measureMs(() => guarded(bytes)),
      anew: measureGrown(body, index, guarded),
      grown: measureGrown(body, index, remembering),
    });
  }
  const medianOf = (name: keyof Costs) => median(samples.map((sample) => sample[name]));
  return {
    parse: medianOf("parse"),
    unguarded: medianOf("unguarded"),
    rewrite: medianOf("rewrite"),
    anew: medianOf("anew"),
    grown: medianOf("grown"),
  };
}

/** @param turn stands in its latest message */
function measureGrown(body: string, turn: number, rewrite: (bytes: Uint8Array<ArrayBuffer>) => unknown): number {
  const latest = JSON.stringify({ role: "user", content: `${turn} ${body.slice(-400, -100)}` });
  const end = body.indexOf("}]", body.lastIndexOf('"role"')) + 1;
  const bytes = new Uint8Array(Buffer.from(`${body.slice(0, end)},${latest}${body.slice(end)}`));
  return measureMs(() => rewrite(bytes));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

console.log("kind  script    bytes   characters  JSON.parse ms  unguarded ms  rewrite ms  ratio  anew ms  grown ms");
const kinds = [
  { kind: "chat", tools: 0, sizes: [1000, 10_000, 200_000] },
  { kind: "agent", tools: 2, sizes: [10_000] },
  { kind: "agent", tools: 40, sizes: [100_000, 400_000, 2_000_000] },
];
for (const { kind, tools, sizes } of kinds) {
  for (const vocabulary of vocabularies) {
    for (const bytes of sizes) {
      const [body = ""] = conversationBodies({ bytes, vocabulary, tools, turns: 1 });
      measureCosts(body, 50);
      const { parse, unguarded, rewrite, anew, grown } = measureCosts(body, 150);
      const row = [
        kind.padEnd(5),
        vocabulary.padEnd(8),
        String(bytes).padStart(7),
        String(body.length).padStart(12),
        parse.toFixed(3).padStart(14),
        unguarded.toFixed(3).padStart(13),
        rewrite.toFixed(3).padStart(11),
        (rewrite / parse).toFixed(2).padStart(6),
        anew.toFixed(3).padStart(8),
        grown.toFixed(3).padStart(9),
      ];
      console.log(row.join(" "));
    }
  }
}
