import type { WallClock } from "../../time/clock.ts";
import { ProxyError } from "../errors.ts";
import { canonical } from "../rewrite/endpoint.ts";
import { listModelNames, type ModelNames, nonThinkingNameOf } from "../rewrite/model-names.ts";
import type { Catalog, Model } from "../../domain/models.ts";
import type { BackendModels } from "./backend-models.ts";
import { createEntryReader, type EntryReader } from "./model-entry.ts";

/** A model under one of its names. */
interface Listed {
  id: string;
  /** Its name everywhere but at the backends. */
  model: string;
  /** The entry that a backend sent; undefined if none has listed it yet. */
  entry: string | undefined;
  contextTokens: number;
  maxOutputTokens: number;
}

export interface ListRequest {
  request: Pick<Request, "method" | "headers">;
  /** The URL's pathname. */
  path: string;
  /** Whether the key may use a model of this name. */
  isAllowed: (name: string) => boolean;
  /** Refuses a name that is not listed. */
  modelNotFound: (asked: string, names: readonly string[]) => ProxyError;
  wall: WallClock;
}

const listPath = "/v1/models";

/**
 * The models of a file: each followed by the name that asks it not to think, then what backends list themselves.
 * @returns undefined if the request asks for something else, or there is no file
 * @throws ProxyError for one model that is not listed, or that the key may not use
 */
export function respondWithModels(
  { request, path, isAllowed, modelNotFound, wall }: ListRequest,
  names: ModelNames,
  { backendModels }: { backendModels: Pick<BackendModels, "findEntry"> },
): Response | undefined {
  if (names.catalog.file === undefined || (request.method !== "GET" && request.method !== "HEAD")) return undefined;
  const read = canonical(path);
  const asked = read.startsWith(`${listPath}/`) ? read.slice(listPath.length + 1) : undefined;
  if (asked === undefined && read !== listPath) return undefined;
  const mayUse = ({ id, model }: Listed): boolean => isAllowed(id) || isAllowed(model);
  const isAnthropic = request.headers.has("anthropic-version");
  // Models that no backend has listed were created now.
  const createdSeconds = Math.floor(wall() / 1000);
  const entries = readerFor(names.catalog);
  const textOf = (one: Listed): string => (isAnthropic ? anthropicEntry : openAiEntry)(one, createdSeconds, entries);
  const all = listModels(names, backendModels, entries);
  if (asked !== undefined) {
    const lower = asked.toLowerCase();
    const found = all.find(({ id }) => id.toLowerCase() === lower);
    if (found === undefined ? !isAllowed(asked) : !mayUse(found)) throw new ProxyError("model_not_allowed");
    if (found === undefined) throw modelNotFound(asked, listModelNames(names).filter(isAllowed));
    return jsonResponse(textOf(found));
  }
  const listed = all.filter(mayUse);
  const data = `"data":[${listed.map(textOf).join(",")}]`;
  if (!isAnthropic) return jsonResponse(`{"object":"list",${data}}`);
  const [first, last] = [listed.at(0), listed.at(-1)].map((one) => JSON.stringify(one?.id ?? null));
  return jsonResponse(`{${data},"has_more":false,"first_id":${first},"last_id":${last}}`);
}

const jsonResponse = (json: string): Response =>
  new Response(json, { headers: { "content-type": "application/json", "x-content-type-options": "nosniff" } });

const readers = new WeakMap<Catalog, EntryReader>();

/** One for each catalog in use. */
function readerFor(catalog: Catalog): EntryReader {
  const reader = readers.get(catalog) ?? createEntryReader();
  readers.set(catalog, reader);
  return reader;
}

function listModels(
  { catalog, discovered }: ModelNames,
  { findEntry }: Pick<BackendModels, "findEntry">,
  entries: EntryReader,
): Listed[] {
  const { models, otherModels, listAliases } = catalog;
  const ofFile = models.flatMap((model) => {
    const { name, contextTokens, maxOutputTokens } = model;
    const entry = findEntry(model.backends, model.servedAs);
    return namesOf(model, listAliases).map((id) => ({ id, model: name, entry, contextTokens, maxOutputTokens }));
  });
  const ofBackends = (discovered?.list() ?? []).map(({ name, backends }): Listed => {
    const entry = findEntry(backends, name);
    // The backend knows its own context, and our cap holds for it too.
    const contextTokens = Math.min(entries.read(entry).contextLength ?? Infinity, otherModels.contextTokens);
    return { id: name, model: name, entry, contextTokens, maxOutputTokens: otherModels.maxOutputTokens };
  });
  return [...ofFile, ...ofBackends];
}

/** A prefix is not a name that a client could ask for. */
const namesOf = (model: Model, listAliases: boolean): string[] => [
  model.name,
  ...(model.reasoning ? [nonThinkingNameOf(model)] : []),
  ...(listAliases ? model.aliases.filter((alias) => !alias.endsWith("*")) : []),
];

function openAiEntry(
  { id, entry, contextTokens, maxOutputTokens }: Listed,
  created: number,
  entries: EntryReader,
): string {
  const own = { id, context_length: contextTokens, max_output_tokens: maxOutputTokens };
  if (entry !== undefined) return entries.edited(entry, own);
  return JSON.stringify(Object.assign({ id, object: "model", created, owned_by: "tollgate" }, own));
}

function anthropicEntry(
  { id, model, entry, contextTokens, maxOutputTokens }: Listed,
  createdSeconds: number,
  entries: EntryReader,
): string {
  const { created = createdSeconds, displayName } = entries.read(entry);
  const at = new Date(Math.min(Math.max(0, created * 1000), maxDateMs));
  return JSON.stringify({
    type: "model",
    id,
    display_name: (id === model ? displayName : undefined) ?? id,
    created_at: at.toISOString(),
    context_length: contextTokens,
    max_output_tokens: maxOutputTokens,
  });
}

/** A date beyond it has no text. */
const maxDateMs = 8.64e15;
