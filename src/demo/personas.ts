import { chatTurn, codingTurn, embeddingTurn, impatientTurn, type NextTurn, supportTurn } from "./client-behaviour.ts";
import type { Traffic } from "./traffic.ts";

/** One simulated key holder: traffic, past and present, and its requests. */
export interface Persona {
  keyName: string;
  traffic: Traffic;
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
    nextTurn: impatientTurn,
  },
  {
    keyName: "Evaluation of last month",
    traffic: { requestsPerMinute: 25, inputTokens: 1500, outputTokens: 400, hours: "always", daysAgo: [27, 22] },
    nextTurn: undefined,
  },
];
