import type { Catalog, CurrentCatalog, Model, ModelRules } from "../domain/models.ts";
import type { Config } from "./config.ts";

type ModelSetting = "servedModel" | "reasoningModel";

export type RewriteSettings = Omit<Config["rewrite"], ModelSetting> &
  Readonly<Record<ModelSetting, string | undefined>>;

/** One backend, and the served model if it is named: what holds without `MODELS_FILE`. */
export function catalogFromEnvironment({
  upstream,
  rewrite,
  queue,
}: Pick<Config, "upstream" | "queue"> & { rewrite: RewriteSettings }): Catalog {
  const { servedModel, reasoningModel } = rewrite;
  const isReasoning = servedModel !== undefined && reasoningModel?.toLowerCase() === servedModel.toLowerCase();
  const rules: ModelRules = {
    reasoning: isReasoning,
    hanGuard: rewrite.hanGuard,
    forceStreamUsage: rewrite.forceStreamUsage,
    contextTokens: rewrite.maxContextTokens,
    maxOutputTokens: rewrite.maxOutputTokens,
    clientRules: rewrite.clientRules,
  };
  const { name: url, baseUrl, socket, apiKey } = upstream;
  const backend = socket === undefined ? new URL(baseUrl).host : url;
  const served = (name: string): Model => ({
    ...rules,
    name,
    servedAs: name,
    ...(isReasoning && { nonThinkingName: `${reasoningModel}-nonthinking` }),
    aliases: rewrite.vendorPrefixes.map((prefix) => `${prefix}-*`),
    backends: [backend],
  });
  return {
    backends: [
      {
        name: backend,
        url,
        baseUrl,
        socket,
        apiKey,
        maxConcurrency: queue.places,
        maxPrefillTokens: queue.maxPrefillTokens,
        spill: false,
        retry503: false,
        discover: false,
        health: "/health",
      },
    ],
    models: servedModel === undefined ? [] : [served(servedModel)],
    defaultModel: rewrite.rewriteUnknownModels ? servedModel : undefined,
    unknownNames: "pass",
    nonThinkingNames: "any",
    listAliases: false,
    otherModels: rules,
    file: undefined,
  };
}

/** A catalog that nothing replaces. */
export const fixedCatalog = (catalog: Catalog): CurrentCatalog => ({ get: () => catalog, onReplaced() {} });
