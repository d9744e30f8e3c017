import {
  chatTurn,
  codingTurn,
  embeddingTurn,
  type ClientBehaviour,
  impatientTurn,
  supportTurn,
} from "./client-behaviour.ts";
import type { Traffic } from "./traffic.ts";

/** One holder of a key: what they did in the past 30 days, and what they do now. */
export interface Character {
  keyName: string;
  traffic: Traffic;
  /** Undefined for one whose key was switched off. */
  habit: ClientBehaviour | undefined;
}

/** Differing habits, so that every chart has layers that can be told apart. */
export const personas: readonly Character[] = [
  {
    keyName: "Chat for the office",
    traffic: { requestsPerMinute: 9, inputTokens: 900, outputTokens: 260, hours: "office", daysAgo: [30, 0] },
    habit: { turn: chatTurn, parallel: 2, pauseMs: [800, 3500] },
  },
  {
    keyName: "Coding agents",
    traffic: { requestsPerMinute: 4, inputTokens: 14_000, outputTokens: 700, hours: "office", daysAgo: [30, 0] },
    habit: { turn: codingTurn, parallel: 1, pauseMs: [300, 1500] },
  },
  {
    keyName: "Support desk",
    traffic: { requestsPerMinute: 12, inputTokens: 420, outputTokens: 90, hours: "always", daysAgo: [30, 0] },
    habit: { turn: supportTurn, parallel: 1, pauseMs: [500, 2500] },
  },
  {
    keyName: "Document index",
    traffic: { requestsPerMinute: 30, inputTokens: 700, outputTokens: 0, hours: "night", daysAgo: [30, 0] },
    habit: { turn: embeddingTurn, parallel: 3, pauseMs: [1500, 6000] },
  },
  {
    keyName: "Phone app, beta",
    traffic: { requestsPerMinute: 3, inputTokens: 300, outputTokens: 180, hours: "evening", daysAgo: [11, 0] },
    habit: { turn: impatientTurn, parallel: 1, pauseMs: [2000, 5000] },
  },
  {
    keyName: "Evaluation of last month",
    traffic: { requestsPerMinute: 25, inputTokens: 1500, outputTokens: 400, hours: "always", daysAgo: [27, 22] },
    habit: undefined,
  },
];
