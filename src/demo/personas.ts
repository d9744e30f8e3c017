import type { Usage } from "../domain/usage.ts";
import type { KeyChange } from "../store/keys/contract.ts";
import {
  chatTurn,
  codingTurn,
  demoEmbeddingModel,
  demoModel,
  demoSmallModel,
  embeddingTurn,
  impatientTurn,
  type NextTurn,
  supportTurn,
} from "./client-behaviour.ts";
import type { Traffic } from "./traffic.ts";
import type { RequestChange } from "../domain/requests.ts";

/** One simulated key holder: traffic, past and present, and its requests. */
export interface Persona {
  keyName: string;
  traffic: Traffic;
  /** How most of its requests look in the log. */
  program: string;
  path: string;
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
  /** Undefined if the key is disabled. */
  nextTurn: NextTurn | undefined;
}

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
    changes: ["system_prompt_language", "thinking"],
    cachedShare: 0.4,
    nextTurn: chatTurn,
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
    nextTurn: codingTurn,
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
    nextTurn: supportTurn,
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
    nextTurn: embeddingTurn,
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
    nextTurn: impatientTurn,
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
    nextTurn: undefined,
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
