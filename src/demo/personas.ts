import { chatTurn, codingTurn, embeddingTurn, impatientTurn, type NextTurn, supportTurn } from "./client-behaviour.ts";
import type { KeyChange } from "../store/key-store.ts";
import type { Traffic } from "./traffic.ts";

/** One simulated key holder: traffic, past and present, and its requests. */
export interface Persona {
  keyName: string;
  traffic: Traffic;
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
    nextTurn: chatTurn,
  },
  {
    keyName: "Coding agents",
    traffic: { requestsPerMinute: 4, inputTokens: 14_000, outputTokens: 700, hours: "office", daysAgo: [30, 0] },
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
    nextTurn: supportTurn,
  },
  {
    keyName: "Document index",
    traffic: { requestsPerMinute: 30, inputTokens: 700, outputTokens: 0, hours: "night", daysAgo: [30, 0] },
    nextTurn: embeddingTurn,
  },
  {
    keyName: "Phone app, beta",
    traffic: { requestsPerMinute: 3, inputTokens: 300, outputTokens: 180, hours: "evening", daysAgo: [11, 0] },
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
    nextTurn: undefined,
  },
];
