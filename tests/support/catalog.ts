import type { Backend, Catalog, CurrentCatalog, Model, ModelRules } from "../../src/domain/models.ts";

const rules: ModelRules = {
  reasoning: false,
  hanGuard: false,
  forceStreamUsage: "off",
  contextTokens: 202_752,
  clientRules: [],
  maxOutputTokens: 16_384,
};

export const backendOf = (name: string, fields: Partial<Backend> = {}): Backend => ({
  name,
  url: `http://${name}.example`,
  baseUrl: `http://${name}.example`,
  socket: undefined,
  apiKey: undefined,
  maxConcurrency: undefined,
  spill: false,
  retry503: false,
  discover: false,
  health: "/health",
  ...fields,
});

export const modelOf = (name: string, backends: readonly string[], fields: Partial<Model> = {}): Model => ({
  ...rules,
  name,
  servedAs: name,
  aliases: [],
  backends,
  ...fields,
});

/** As a file says it. */
export const fileCatalog = (
  backends: readonly Backend[],
  models: readonly Model[],
  fields: Partial<Catalog> = {},
): Catalog => ({
  backends,
  models,
  defaultModel: undefined,
  unknownNames: "refuse",
  nonThinkingNames: "own",
  listAliases: false,
  otherModels: rules,
  file: { path: "models.yaml", hash: "0".repeat(64) },
  ...fields,
});

/** Backends at addresses, which all serve the model `m` unless the models are given. */
export function catalogWith(
  backends: readonly (Partial<Backend> & Pick<Backend, "name" | "url">)[],
  models: readonly (Partial<Model> & Pick<Model, "name">)[] = [{ name: "m" }],
): Catalog {
  const names = backends.map(({ name }) => name);
  return fileCatalog(
    backends.map((chosen) => backendOf(chosen.name, { baseUrl: chosen.url, ...chosen })),
    models.map((chosen) => modelOf(chosen.name, names, chosen)),
  );
}

/** A catalog that a test replaces. */
export function replaceableCatalog(first: Catalog): CurrentCatalog & { replace(next: Catalog): void } {
  let current = first;
  const listeners: ((catalog: Catalog) => void)[] = [];
  return {
    get: () => current,
    onReplaced: (listener) => void listeners.push(listener),
    replace(next) {
      current = next;
      for (const listener of listeners) listener(next);
    },
  };
}
