import type { Catalog, DiscoveredModel, DiscoveredModels, Model, Target } from "../../domain/models.ts";

/** What a name means. */
export interface NamedModel extends Target {
  /** The model's name everywhere but at the backends. */
  name: string;
  /** The name that is sent to the backend. */
  sent: string;
  /** The name requests a response without a think block from a reasoning model. */
  nonThinking: boolean;
}

/** The names of a catalog, arranged to be looked up. */
export interface ModelNames {
  readonly catalog: Catalog;
  /** What requests get that name no model. */
  readonly unnamed: Target;
  /** Names and aliases in lower case. */
  readonly own: ReadonlyMap<string, ModelEntry>;
  readonly aliases: ReadonlyMap<string, ModelEntry>;
  /** The longest first. */
  readonly prefixes: readonly (readonly [prefix: string, entry: ModelEntry])[];
  /** What names become that no backend has. */
  readonly defaultEntry: ModelEntry | undefined;
  readonly reasoningEntry: ModelEntry | undefined;
  /** Undefined if no backend adds models. */
  readonly discovered: DiscoveredModels | undefined;
}

/** A model under its name as it is, and under the one that asks it not to think. */
interface ModelEntry {
  plain: NamedModel;
  nonThinking: NamedModel;
}

export function createModelNames(catalog: Catalog, discovered?: DiscoveredModels): ModelNames {
  const { models, backends, defaultModel, otherModels } = catalog;
  const own = new Map<string, ModelEntry>();
  const aliases = new Map<string, ModelEntry>();
  const prefixes: [prefix: string, entry: ModelEntry][] = [];
  for (const model of models) {
    const entry = entryOf(model);
    own.set(matchable(model.name), entry);
    for (const alias of model.aliases) {
      if (alias.endsWith("*")) prefixes.push([alias.slice(0, -1).toLowerCase(), entry]);
      else aliases.set(matchable(alias), entry);
    }
  }
  const defaultEntry = defaultModel === undefined ? undefined : own.get(matchable(defaultModel));
  const [first] = [...(defaultEntry?.plain.candidates ?? []), ...backends.map(({ name }) => name)];
  return {
    catalog,
    unnamed: { model: undefined, rules: otherModels, candidates: first === undefined ? [] : [first] },
    own,
    aliases,
    prefixes: prefixes.toSorted(([a], [b]) => b.length - a.length),
    defaultEntry,
    reasoningEntry: [...own.values()].find(({ plain }) => plain.rules.reasoning),
    discovered: backends.some(({ discover }) => discover) ? discovered : undefined,
  };
}

function entryOf(model: Model): ModelEntry {
  const target = { model, rules: model, candidates: model.backends, name: model.name, sent: model.servedAs };
  return { plain: { ...target, nonThinking: false }, nonThinking: { ...target, nonThinking: true } };
}

/** Matches without regard to case; a name that is not rewritten stays exactly as submitted. */
export function resolveModel(submitted: string, names: ModelNames): NamedModel {
  const name = matchable(submitted);
  const own = names.own.get(name);
  if (own !== undefined) return own.plain;
  const entry = findNonThinking(name, names);
  if (entry !== undefined) return entry.nonThinking;
  const found = findAlias(name, names);
  if (found !== undefined) return found.plain;
  const discovered = names.discovered?.find(name);
  if (discovered !== undefined) return discoveredModel(discovered, names.catalog);
  return names.defaultEntry?.plain ?? unknownModel(submitted, names);
}

/** The names of all models that there are. */
export const listModelNames = ({ catalog, discovered }: ModelNames): string[] =>
  [...catalog.models, ...(discovered?.list() ?? [])].map(({ name }) => name);

const nonThinkingSuffix = "-nonthinking";

export const nonThinkingNameOf = ({ name, nonThinkingName }: Model): string =>
  nonThinkingName ?? `${name}${nonThinkingSuffix}`;

/** The model whose name or alias has the suffix, if it has the mode. */
function findNonThinking(name: string, names: ModelNames): ModelEntry | undefined {
  if (names.reasoningEntry === undefined) return undefined;
  if (names.catalog.nonThinkingNames === "any") {
    return /-nonthink(?:ing)?$/.test(name) ? names.reasoningEntry : undefined;
  }
  if (!name.endsWith(nonThinkingSuffix)) return undefined;
  const rest = matchable(name.slice(0, -nonThinkingSuffix.length));
  const entry = names.own.get(rest) ?? findAlias(rest, names);
  return entry?.plain.rules.reasoning === true ? entry : undefined;
}

function findAlias(name: string, { aliases, prefixes }: ModelNames): ModelEntry | undefined {
  const exact = aliases.get(name);
  if (exact !== undefined) return exact;
  for (const [prefix, entry] of prefixes) if (name.startsWith(prefix)) return entry;
  return undefined;
}

const discoveredModel = ({ name, backends }: DiscoveredModel, { otherModels }: Catalog): NamedModel => ({
  model: undefined,
  rules: otherModels,
  candidates: backends,
  name,
  sent: name,
  nonThinking: false,
});

function unknownModel(submitted: string, { catalog, unnamed }: ModelNames): NamedModel {
  const candidates = catalog.unknownNames === "pass" ? unnamed.candidates : [];
  return { ...unnamed, candidates, name: submitted, sent: submitted, nonThinking: false };
}

const longContextMark = "[1m]";

/** Coding agents append this to a name as their own mark of a long context window; some append it twice. */
export function matchable(name: string): string {
  const lower = name.toLowerCase();
  let end = lower.length;
  while (lower.endsWith(longContextMark, end)) end -= longContextMark.length;
  return lower.slice(0, end);
}
