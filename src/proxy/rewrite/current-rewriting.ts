import type { Catalog, CurrentCatalog, DiscoveredModels } from "../../domain/models.ts";
import { createKnownBlocks, type Hash } from "../json/known-blocks.ts";
import { createRecall } from "./language.ts";
import { setsEngineMembers } from "./engine-members.ts";
import { createModelNames } from "./model-names.ts";
import { createRewriter, untouched } from "./rewrite.ts";
import { lastingMembers } from "./watched-members.ts";
import { needsOf, type RewriteRules, streamUsages } from "./rules.ts";

export type Rewriting = ReturnType<typeof createRewriting>;
export type Rewriters = Rewriting["plain"];

/** What is remembered of bodies that came before. */
type Memory = Pick<RewriteRules, "recall" | "knownBlocks" | "timed">;

/** @param hash with a seed that no client knows */
export const createMemory = (hash: Hash): Memory => ({
  recall: createRecall(hash),
  knownBlocks: createKnownBlocks({ hash, seams: lastingMembers }),
});

/** What is made of a catalog. A request keeps the one that it began with. */
function createRewriting(catalog: Catalog, discovered?: DiscoveredModels, memory: Memory = {}) {
  const names = createModelNames(catalog, discovered);
  /** The rules with and without the usage that we request of streams: a backend may refuse `stream_options`. */
  const rewriters = (streamUsage: RewriteRules["streamUsage"], hasKeyRules: boolean) => {
    const rules = { names, streamUsage, hasKeyRules, ...memory };
    return {
      /** Some requests are given `stream_options`. */
      mayAsk: needsOf(rules).streamOptions,
      asking: createRewriter(rules),
      unasked: createRewriter({ ...rules, streamUsage: streamUsages.unasked }),
    };
  };
  return {
    names,
    /** Stands for a body that is not read. */
    unread: { ...untouched, target: names.unnamed },
    /** The rules of a model depend on client, key and engine. */
    goesByClient: goesByClient(catalog) || setsEngineMembers(catalog),
    /** Those for keys with a limit of tokens: a stream that is not asked for its usage can only be estimated. */
    limited: rewriters(streamUsages.required, true),
    /** Those for keys with models that they may use, and no limit of tokens. */
    named: rewriters(streamUsages.asSet, true),
    plain: rewriters(streamUsages.asSet, false),
  };
}

/** Whether the rules of a model depend on client and engine. */
export const goesByClient = ({ models, otherModels }: Catalog): boolean =>
  [...models, otherModels].some(({ clientRules }) => clientRules === "auto");

/** What is made of the catalog in use. */
export type CurrentRewriting = ReturnType<typeof createCurrentRewriting>;

export function createCurrentRewriting(current: CurrentCatalog, discovered?: DiscoveredModels, memory: Memory = {}) {
  const timed = new Set<string>();
  const create = (catalog: Catalog): Rewriting => createRewriting(catalog, discovered, { ...memory, timed });
  const rewriting = {
    latest: create(current.get()),
    /** Has streams of llama.cpp asked for their running counts, too. @param server the header of that name */
    learnServer(backend: string, server: string | null) {
      if (server?.startsWith("llama.cpp") === true) timed.add(backend);
      else timed.delete(backend);
    },
  };
  current.onReplaced((catalog) => {
    rewriting.latest = create(catalog);
  });
  return rewriting;
}
