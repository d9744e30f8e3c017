/**
 * What coding agents send: a long system prompt, turns that each add a message of the user, a tool call and its result, and
 * behind these, as their SDKs write it, tools with schemas. A conversation comes again with each turn, longer by one, so a body
 * is worth measuring only among those before and after it.
 */

/** In a text of the user: replaced by as many digits, which differ from conversation to conversation. */
export const conversationMark = "@dialog@";

const words = {
  english: [
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
} satisfies Record<string, readonly string[]>;

export type Vocabulary = keyof typeof words;
export const vocabularies = Object.keys(words) as Vocabulary[];

/** Returns the same text for the same length and vocabulary in every run. */
export function textOf(characters: number, vocabulary: Vocabulary): string {
  const list: readonly string[] = words[vocabulary];
  let text = "";
  for (let step = characters; text.length < characters; step = (step * 1_103_515_245 + 12_345) % 2_147_483_648) {
    text += `${list[(step >> 8) % list.length]} `;
  }
  return text;
}

export interface ConversationShape {
  /** Of its last body. */
  bytes: number;
  vocabulary: Vocabulary;
  /** Letters other than ASCII are sent as escapes, as Python's json module does. */
  escaped?: boolean;
  /** How many tools it has, whose definitions take a good kilobyte each. A chat has none. */
  tools: number;
  /** How many bodies. */
  turns: number;
}

/** The bodies of its last turns, each longer by a turn than the one before. */
export function conversationBodies({ bytes, vocabulary, escaped = false, tools, turns }: ConversationShape): string[] {
  const text = (characters: number): string => textOf(characters, vocabulary);
  const write = (value: unknown): string => (escaped ? escapeAll(JSON.stringify(value)) : JSON.stringify(value));
  const first = { role: "system", content: text(tools > 0 ? Math.min(8000, bytes / 8) : 300) };
  const start = `{"model":"m","messages":[${write(first)}`;
  const options = {
    ...(tools > 0 && { tools: Array.from({ length: tools }, (_, index) => toolOf(index, text)) }),
    max_tokens: 32_000,
  };
  const end = `],${write(options).slice(1)}`;
  const list: string[] = [];
  // The turns of a short conversation are short.
  const share = Math.min(1, bytes / 100_000);
  const turn = write(turnOf(tools > 0, (characters) => text(characters * share))).slice(1, -1);
  const count = Math.max(turns, Math.floor((bytes - Buffer.byteLength(start + end)) / Buffer.byteLength(`,${turn}`)));
  const latest = write({ role: "user", content: `${conversationMark} ${text(200)}` });
  for (let body = count - turns; body < count; body += 1) {
    list.push(`${start}${`,${turn}`.repeat(body)},${latest}${end}`);
  }
  return list;
}

const toolOf = (index: number, text: (characters: number) => string): object => {
  const property = { type: "string", description: text(120), enum: ["content", "files_with_matches"] };
  const properties = {
    path: property,
    pattern: property,
    limit: { type: "integer", minimum: 0, description: text(60) },
  };
  return {
    type: "function",
    function: {
      name: `tool_${index}`,
      description: text(400),
      parameters: { type: "object", properties, required: ["path"], additionalProperties: false },
    },
  };
};

function turnOf(isAgent: boolean, text: (characters: number) => string): object[] {
  const asked = `${conversationMark} ${text(200)}`;
  if (!isAgent) {
    return [
      { role: "user", content: asked },
      { role: "assistant", content: text(400) },
    ];
  }
  const call = { name: "tool_1", arguments: JSON.stringify({ path: "src/a.ts", content: text(900) }) };
  return [
    { role: "user", content: [{ type: "text", text: asked }] },
    { role: "assistant", content: text(100), tool_calls: [{ id: "call_1", type: "function", function: call }] },
    { role: "tool", tool_call_id: "call_1", content: text(2000) },
  ];
}

const escapeAll = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
