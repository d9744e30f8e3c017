import type { Usage } from "../domain/usage.ts";
import type { KeyChange } from "../store/keys/contract.ts";
import type { Traffic } from "./traffic.ts";
import type { RequestChange } from "../domain/requests.ts";

export const demoModel = "tollgate-demo";
export const demoSmallModel = "tollgate-demo-small";
export const demoEmbeddingModel = "tollgate-demo-embedding";

/** One simulated key holder: traffic, past and present, and its requests. Its key is disabled once the traffic is over. */
export interface Persona {
  keyName: string;
  traffic: Traffic;
  program: string;
  path: keyof typeof prompts;
  asks: string;
  model: string;
  streamed: boolean;
  changes: readonly RequestChange[];
  /** Cached input, as a share of the input; the messages API reports it beside the input. */
  cachedShare?: number;
  /** Leaves some of its streams before their end. */
  isImpatient?: boolean;
  /** Its limits are above its traffic. */
  details?: Pick<KeyChange, "owner" | "note" | "tags" | "rules">;
}

const question = "Explain the difference between latency and throughput to a new colleague.";
const paragraph = "A road, a gate, a keeper with a book, and a line in it for every cart that passes. ";
const messagesOf = (paragraphs: number) => [{ role: "user", content: `${question}\n${paragraph.repeat(paragraphs)}` }];

/** What a client asks in its turn, counted from 0, and what limits the response. */
const prompts = {
  "/v1/chat/completions": (_: number, limit: number) => ({ messages: messagesOf(20), max_tokens: limit }),
  /** One in three with maximum effort. */
  "/v1/messages": (turn: number, limit: number) => ({
    messages: messagesOf(150 + 40 * (turn % 8)),
    max_tokens: limit,
    ...(turn % 3 === 0 && { output_config: { effort: "max" } }),
  }),
  "/v1/responses": (_: number, limit: number) => ({ input: paragraph.repeat(8), max_output_tokens: limit }),
  "/v1/embeddings": (turn: number) => ({
    input: Array.from({ length: 8 }, (_, index) => paragraph.repeat(1 + ((turn + index) % 6))),
  }),
};

export const bodyOf = ({ path, asks, streamed }: Persona, turn: number, outputTokens: number): object => ({
  model: asks,
  ...(streamed && { stream: true }),
  ...prompts[path](turn, outputTokens),
});

/** Users on unreliable networks: one stream in eight is left before its end. @returns after how many milliseconds */
export const leavesAfter = ({ isImpatient = false }: Persona, chance: (salt: number) => number): number =>
  isImpatient && chance(20) < 1 / 8 ? 700 + 1800 * chance(21) : Infinity;

/** Their traffic differs enough for each chart to show distinct layers. */
export const personas: readonly Persona[] = [
  {
    keyName: "Chat for the office",
    traffic: { requestsPerMinute: 9, inputTokens: 900, outputTokens: 260, hours: "office", daysAgo: [30, 0] },
    program: "openai-python/2.8.1",
    path: "/v1/chat/completions",
    asks: demoModel,
    model: demoModel,
    streamed: true,
    changes: ["system_prompt_language", "thinking", "stream_usage"],
    cachedShare: 0.4,
  },
  {
    keyName: "Coding agents",
    traffic: { requestsPerMinute: 4, inputTokens: 14_000, outputTokens: 700, hours: "office", daysAgo: [30, 0] },
    program: "claude-cli/2.0.44",
    path: "/v1/messages",
    asks: "claude-code",
    model: demoModel,
    streamed: true,
    changes: ["model", "system_prompt_language", "thinking"],
    cachedShare: 2.2,
    details: {
      owner: "Platform team",
      note: "Shared by all coding agents.",
      tags: ["internal"],
      rules: { max_concurrency: 64, tokens_per_minute: 5_000_000, tokens_per_month: 2_000_000_000 },
    },
  },
  {
    keyName: "Support desk",
    traffic: { requestsPerMinute: 12, inputTokens: 420, outputTokens: 90, hours: "always", daysAgo: [30, 0] },
    program: "OpenAI/JS",
    path: "/v1/chat/completions",
    asks: `${demoModel}-nonthinking`,
    model: demoModel,
    streamed: false,
    changes: ["model", "system_prompt_language", "thinking"],
  },
  {
    keyName: "Document index",
    traffic: { requestsPerMinute: 30, inputTokens: 700, outputTokens: 0, hours: "night", daysAgo: [30, 0] },
    program: "langchain-indexer/0.4",
    path: "/v1/embeddings",
    asks: demoEmbeddingModel,
    model: demoEmbeddingModel,
    streamed: false,
    changes: [],
  },
  {
    keyName: "Phone app, beta",
    traffic: { requestsPerMinute: 3, inputTokens: 300, outputTokens: 180, hours: "evening", daysAgo: [11, 0] },
    program: "PhoneApp/3.1",
    path: "/v1/responses",
    asks: demoSmallModel,
    model: demoSmallModel,
    streamed: true,
    changes: ["thinking"],
    isImpatient: true,
    details: {
      owner: "Mobile team",
      tags: ["beta"],
      rules: { scope: "inference", requests_per_minute: 300, tokens_per_day: 2_000_000 },
    },
  },
  {
    keyName: "Evaluation of last month",
    traffic: { requestsPerMinute: 25, inputTokens: 1500, outputTokens: 400, hours: "always", daysAgo: [27, 22] },
    program: "eval-harness/1.9",
    path: "/v1/chat/completions",
    asks: demoSmallModel,
    model: demoSmallModel,
    streamed: false,
    changes: ["system_prompt_language"],
  },
];

/** The usage of a request, or of several. The backend reports cached input for some personas only. */
export const usageOf = (
  { cachedShare }: Persona,
  { inputTokens, outputTokens }: Pick<Usage, "inputTokens" | "outputTokens">,
): Usage => ({
  inputTokens,
  outputTokens,
  cachedInputTokens: cachedShare === undefined ? undefined : Math.round(inputTokens * cachedShare),
});
