/** The request of a client's turn, counted from 0, to which the model responds with `outputTokens`. */
export type NextTurn = (turn: number, outputTokens: number) => ClientTurn;

export interface ClientTurn {
  path: string;
  body: Readonly<Record<string, unknown>>;
  /** If set, the client disconnects after this time. */
  leavesAfterMs?: number;
}

export const demoModel = "tollgate-demo";
export const demoSmallModel = "tollgate-demo-small";
export const demoEmbeddingModel = "tollgate-demo-embedding";

const questions = [
  "Summarise the minutes of this morning's meeting in three sentences.",
  "Which of our suppliers deliver within two days?",
  "Write a friendly reminder about an invoice that is due.",
  "Explain the difference between latency and throughput to a new colleague.",
  "Translate into Korean: the gate counts what passes.",
];

const paragraph = "A road, a gate, a keeper with a book, and a line in it for every cart that passes. ";

const pick = <T>(list: readonly T[], turn: number): T | undefined => list[turn % list.length];
/** Varies lengths from turn to turn, the same way in each run. */
const between = (from: number, to: number, turn: number): number => from + ((turn * 7919) % (to - from));

/** Chats of moderate length; one in five requests the non-thinking model. */
export function chatTurn(turn: number, outputTokens: number): ClientTurn {
  const messages = [
    { role: "system", content: `You are the assistant of an office. ${paragraph.repeat(20)}` },
    { role: "user", content: pick(questions, turn) },
  ];
  const model = turn % 5 === 4 ? `${demoModel}-nonthinking` : demoModel;
  const body = { model, stream: true, stream_options: { include_usage: true }, messages };
  return { path: "/v1/chat/completions", body: { ...body, max_tokens: outputTokens } };
}

/** Long contexts through the messages API under another vendor's model name, one in three with maximum effort. */
export function codingTurn(turn: number, outputTokens: number): ClientTurn {
  const content = `Find out why the test fails.\n${paragraph.repeat(150 + 40 * (turn % 8))}`;
  const effort = turn % 3 === 0 ? { output_config: { effort: "max" } } : {};
  const body = { model: "claude-code", stream: true, messages: [{ role: "user", content }], ...effort };
  return { path: "/v1/messages", body: { ...body, max_tokens: outputTokens } };
}

/** Short responses, not streamed, without thinking. */
export function supportTurn(turn: number, outputTokens: number): ClientTurn {
  const messages = [{ role: "user", content: `${paragraph.repeat(4)}${pick(questions, turn)}` }];
  const body = { model: `${demoModel}-nonthinking`, messages, max_tokens: outputTokens };
  return { path: "/v1/chat/completions", body };
}

/** Batches of text to index. */
export function embeddingTurn(turn: number): ClientTurn {
  const input = Array.from({ length: 8 }, (_, index) => paragraph.repeat(1 + ((turn + index) % 6)));
  return { path: "/v1/embeddings", body: { model: demoEmbeddingModel, input } };
}

/** Users on unreliable networks: one stream in eight is left before its end. */
export function impatientTurn(turn: number, outputTokens: number): ClientTurn {
  const input = `${paragraph.repeat(8)}${pick(questions, turn)}`;
  const body = { model: demoSmallModel, stream: true, input, max_output_tokens: outputTokens };
  return { path: "/v1/responses", body, ...(turn % 8 === 0 && { leavesAfterMs: between(700, 2500, turn) }) };
}
