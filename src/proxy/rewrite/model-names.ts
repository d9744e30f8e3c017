import { contentOf, decodeHead, decodeTail, findString } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import type { JsonValue, Span } from "../json/slots.ts";
import type { Catalog, DiscoveredModels, Model, Target } from "../../domain/models.ts";
import type { RequestedNames } from "../../domain/requests.ts";

/** What a name means. */
export interface NamedModel extends Target {
  /** The model's name everywhere but at the backends. */
  name: string;
  /** The name that is sent to the backend. */
  sent: string;
  /** The name requests a response without a think block from a reasoning model. */
  nonThinking: boolean;
}

/** A model under its name as it is, and under the one that asks it not to think. */
interface ModelEntry {
  plain: NamedModel;
  nonThinking: NamedModel;
}

export type ModelNames = ReturnType<typeof createModelNames>;

/** The names of a catalog, arranged to be looked up. */
export function createModelNames(catalog: Catalog, discovered?: DiscoveredModels) {
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
  const unnamed: Target = { model: undefined, rules: otherModels, candidates: first === undefined ? [] : [first] };
  return {
    catalog,
    /** What requests get that name no model. */
    unnamed,
    /** Names and aliases in lower case. */
    own,
    aliases,
    /** The longest first. */
    prefixes: prefixes.toSorted(([a], [b]) => b.length - a.length),
    /** What names become that no backend has. */
    defaultEntry,
    reasoningEntry: [...own.values()].find(({ plain }) => plain.rules.reasoning),
    /** Undefined if no backend adds models. */
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
  if (discovered === undefined && names.defaultEntry !== undefined) return names.defaultEntry.plain;
  const { catalog, unnamed } = names;
  const candidates = discovered?.backends ?? (catalog.unknownNames === "pass" ? unnamed.candidates : []);
  const sent = discovered?.name ?? submitted;
  return { ...unnamed, candidates, name: sent, sent, nonThinking: false };
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

const longContextMark = "[1m]";

/** Coding agents append this to a name as their own mark of a long context window; some append it twice. */
export function matchable(name: string): string {
  const lower = name.toLowerCase();
  let end = lower.length;
  while (lower.endsWith(longContextMark, end)) end -= longContextMark.length;
  return lower.slice(0, end);
}

interface RewrittenModel {
  model: RequestedNames;
  target: NamedModel;
}

/** Rewrites every `model`. @returns what became of the last one, which backends use; undefined: it is no name */
export function rewriteModel(
  editor: JsonEditor,
  bytes: Uint8Array,
  values: readonly JsonValue[],
  names: ModelNames,
): RewrittenModel | undefined {
  const hasFile = names.catalog.file !== undefined;
  let last: RewrittenModel | undefined;
  for (const value of hasFile ? values.slice(-1) : values) {
    last = undefined;
    if (value.kind !== "string") continue;
    const asked = findString(bytes, value) ?? endsOf(bytes, contentOf(value));
    const target = resolveModel(asked, names);
    const { sent, name } = target;
    if (sent !== asked) editor.replace(value, JSON.stringify(sent));
    last = { target, model: { asked, sent, name } };
  }
  if (!hasFile || last === undefined) return last;
  // A backend that uses the first must not run another model than is counted.
  for (const value of values.slice(0, -1)) editor.replace(value, JSON.stringify(last.target.sent));
  return last;
}

/** No rule looks at more of a name. */
const maxAffixLength = 1024;

/** The middle of a name of more than 64 KiB is left out. */
const endsOf = (bytes: Uint8Array, content: Span): string =>
  decodeHead(bytes, content, maxAffixLength) + decodeTail(bytes, content, maxAffixLength);
