/**
 * The cost of a rewrite relative to `JSON.parse` of the same body, with every rule on. The bodies are chats, and those of
 * coding agents: tools with schemas, then messages of text, tool calls and tool results. Run: `bun tests/bench/rewrite.ts`
 */
import { runAtOnce } from "../../src/proxy/json/read.ts";
import { getEndpoint } from "../../src/proxy/rewrite/endpoint.ts";
import { createRequestBody } from "../../src/proxy/rewrite/request-body.ts";
import { rewriteInSteps } from "../../src/proxy/rewrite/rewrite.ts";
import { createRecall, type Recall } from "../../src/proxy/rewrite/language.ts";
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

const vocabularies = {
  ascii: [
    "const",
    "result",
    "= await",
    "read(path)",
    "return",
    "if (ready)",
    "the",
    '"quoted"',
    "src/a.ts",
    "\n    ",
    "\t",
  ],
  korean: ["이 파일을", "고쳐서", "테스트를", "실행해 주세요", "함수는", "값을", "반환한다", '"인용"', "\n    "],
  chinese: ["请修改", "这个文件", "然后", "运行测试", "函数", "返回", "结果", '"引用"', "\n    "],
};

/** Returns the same text for the same length and vocabulary in every run. */
function textOf(characters: number, vocabulary: readonly string[]): string {
  let text = "";
  for (let step = characters; text.length < characters; step = (step * 1_103_515_245 + 12_345) % 2_147_483_648) {
    text += `${vocabulary[(step >> 8) % vocabulary.length]} `;
  }
  return text;
}

function agentBody(bytes: number, vocabulary: readonly string[]): string {
  const text = (characters: number) => textOf(characters, vocabulary);
  const property = { type: "string", description: text(60), enum: ["a", "b"] };
  const tool = (name: string) => ({
    type: "function",
    function: {
      name,
      description: text(400),
      parameters: { type: "object", properties: { path: property, pattern: property } },
    },
  });
  const messages: unknown[] = [{ role: "system", content: text(2000) }];
  const body = {
    model: "vendor-large",
    max_tokens: 32_000,
    stream: true,
    tools: Array.from({ length: 8 }, (_, index) => tool(`tool_${index}`)),
    output_config: { effort: "max" },
    messages,
  };
  const call = { name: "tool_1", arguments: JSON.stringify({ path: "src/a.ts", content: text(900) }) };
  const round = [
    { role: "user", content: [{ type: "text", text: text(300) }] },
    { role: "assistant", content: text(100), tool_calls: [{ id: "call_1", type: "function", function: call }] },
    { role: "tool", tool_call_id: "call_1", content: text(2500) },
  ];
  const rounds = (bytes - Buffer.byteLength(JSON.stringify(body))) / Buffer.byteLength(JSON.stringify(round));
  for (let index = 0; index < rounds; index += 1) messages.push(...round);
  return JSON.stringify(body);
}

/** A conversation without tools, of short messages. */
function chatBody(bytes: number, vocabulary: readonly string[]): string {
  const messages = [{ role: "system", content: textOf(200, vocabulary) }];
  const round = ["user", "assistant"].map((role) => ({ role, content: textOf(300, vocabulary) }));
  const rounds = (bytes - 1000) / Buffer.byteLength(JSON.stringify(round));
  for (let index = 0; index < rounds; index += 1) messages.push(...round);
  messages.push({ role: "user", content: textOf(60, vocabulary) });
  return JSON.stringify({ model: "vendor-large", messages, max_tokens: 32_000, stream: true });
}

/** At once, however long the body is. */
function rewriterOf(chosen: RewriteSettings, recall?: Recall): (bytes: Uint8Array<ArrayBuffer>) => unknown {
  const endpoint = getEndpoint("/v1/chat/completions");
  const rewriteRules = { ...rulesOf(chosen), recall };
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
  const remembering = rewriterOf(rules, createRecall(hash));
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
  { kind: "chat", create: chatBody, sizes: [1000, 10_000, 200_000] },
  { kind: "agent", create: agentBody, sizes: [10_000, 100_000, 400_000, 2_000_000] },
];
const cases = kinds.flatMap(({ kind, create, sizes }) =>
  Object.entries(vocabularies).map(([script, vocabulary]) => ({ kind, create, sizes, script, vocabulary })),
);
for (const { kind, create, sizes, script, vocabulary } of cases) {
  for (const bytes of sizes) {
    const body = create(bytes, vocabulary);
    measureCosts(body, 50);
    const { parse, unguarded, rewrite, anew, grown } = measureCosts(body, 150);
    const row = [
      kind.padEnd(5),
      script.padEnd(8),
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
