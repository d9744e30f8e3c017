import { catalogFromEnvironment, fixedCatalog, type RewriteSettings as Settings } from "../../src/config/catalog.ts";
import type { Catalog } from "../../src/domain/models.ts";
import { eventLoopPortions } from "../../src/proxy/json/read.ts";
import { hash } from "../../src/proxy/request/conversation.ts";
import { createModelNames } from "../../src/proxy/rewrite/model-names.ts";
import {
  createCurrentRewriting,
  createMemory,
  createRewriter,
  type CurrentRewriting,
  type RewriteRequest,
  type RewriteRules,
  streamUsages,
} from "../../src/proxy/rewrite/rewrite.ts";
import type { Engines } from "../../src/domain/backends.ts";

/** The settings that rules come from without `MODELS_FILE`. */
export type RewriteSettings = Settings & { hasKeyRules?: boolean };

/** The default settings without the Han guard, with those that a test chooses. */
export function rewriteRules(chosen: Partial<RewriteSettings> = {}): RewriteSettings {
  return {
    servedModel: undefined,
    reasoningModel: undefined,
    rewriteUnknownModels: false,
    vendorPrefixes: ["anthropic", "claude"],
    hanGuard: false,
    maxContextTokens: 202_752,
    maxOutputTokens: 16_384,
    forceStreamUsage: "off",
    clientRules: [],
    ...chosen,
  };
}

export const familyRules = { servedModel: "Deep-V4", reasoningModel: "deep-v4" } as const;

const upstream = {
  name: "http://up.example",
  baseUrl: "http://up.example",
  socket: undefined,
  apiKey: undefined,
  streamReadTimeoutMs: 111,
  nonStreamReadTimeoutMs: 222,
};
const queue = {
  places: undefined,
  maxPrefillTokens: undefined,
  maxWaiting: 0,
  timeoutMs: 0,
  lowTimeoutMs: 0,
  backendWaitMs: 0,
};

export const catalogOf = (rewrite: RewriteSettings): Catalog => catalogFromEnvironment({ upstream, rewrite, queue });

/** What the proxy makes of a catalog that stays. */
export const rewritingOf = (settings: RewriteSettings): CurrentRewriting =>
  createCurrentRewriting(fixedCatalog(catalogOf(settings)));

/** One for all tests of a process, as one is for all requests: what is remembered may change nothing. */
const memory = createMemory(hash);

export const rulesOf = (settings: RewriteSettings): RewriteRules => ({
  names: createModelNames(catalogOf(settings)),
  streamUsage: streamUsages.asSet,
  hasKeyRules: settings.hasKeyRules === true,
  ...memory,
});

/** They end only where a body is long, however slow the machine is. */
const endless: typeof eventLoopPortions = { ...eventLoopPortions, portionMs: Infinity };

export const rewriterOf = (settings: RewriteSettings, portions = endless): RewriteRequest =>
  createRewriter(rulesOf(settings), portions);

/** The engines of backends that are none. */
export const noEngines: Engines = { learn: async () => {}, enginesOf: () => [] };
