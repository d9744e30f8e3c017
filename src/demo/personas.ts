import {
  chatTurn,
  codingTurn,
  embeddingTurn,
  type ClientBehaviour,
  impatientTurn,
  supportTurn,
} from "./client-behaviour.ts";
import type { Traffic } from "./traffic.ts";

/** One simulated key holder: past traffic and present behaviour. */
export interface Persona {
  keyName: string;
  traffic: Traffic;
  /** undefined if the key is disabled. */
  behaviour: ClientBehaviour | undefined;
}

/** Their traffic differs enough for each chart to show distinct layers. */
export const personas: readonly Persona[] = [
  {
    keyName: "Chat for the office",
    traffic: { requestsPerMinute: 9, inputTokens: 900, outputTokens: 260, hours: "office", daysAgo: [30, 0] },
    behaviour: { nextTurn: chatTurn, parallel: 2, pauseMs: [800, 3500] },
  },
  {
    keyName: "Coding agents",
    traffic: { requestsPerMinute: 4, inputTokens: 14_000, outputTokens: 700, hours: "office", daysAgo: [30, 0] },
    behaviour: { nextTurn: codingTurn, parallel: 1, pauseMs: [300, 1500] },
  },
  {
    keyName: "Support desk",
    traffic: { requestsPerMinute: 12, inputTokens: 420, outputTokens: 90, hours: "always", daysAgo: [30, 0] },
    behaviour: { nextTurn: supportTurn, parallel: 1, pauseMs: [500, 2500] },
  },
  {
    keyName: "Document index",
    traffic: { requestsPerMinute: 30, inputTokens: 700, outputTokens: 0, hours: "night", daysAgo: [30, 0] },
    behaviour: { nextTurn: embeddingTurn, parallel: 3, pauseMs: [1500, 6000] },
  },
  {
    keyName: "Phone app, beta",
    traffic: { requestsPerMinute: 3, inputTokens: 300, outputTokens: 180, hours: "evening", daysAgo: [11, 0] },
    behaviour: { nextTurn: impatientTurn, parallel: 1, pauseMs: [2000, 5000] },
  },
  {
    keyName: "Evaluation of last month",
    traffic: { requestsPerMinute: 25, inputTokens: 1500, outputTokens: 400, hours: "always", daysAgo: [27, 22] },
    behaviour: undefined,
  },
];
