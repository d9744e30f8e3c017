import type { WallClock } from "../../time/clock.ts";
import { ProxyError } from "../errors.ts";
import { canonical, modelIdIn } from "../rewrite/endpoint.ts";
import { listModelNames, type ModelNames, nonThinkingNameOf } from "../rewrite/model-names.ts";
import type { Model } from "../../domain/models.ts";
import type { BackendModels } from "./discovered-models.ts";
import { editEntry, type ModelEntry, readEntry } from "./model-entry.ts";

/** A model under one of its names. */
interface Listed {
  id: string;
  /** Its name everywhere but at the backends. */
  model: string;
  /** The entry that a backend sent; undefined if none has listed it yet. */
  entry: ModelEntry | undefined;
  contextTokens: number;
  maxOutputTokens: number;
  isEmbedding: boolean;
  /** It answers to this name, and lists leave it out. */
  isUnlisted?: boolean;
}

const listPath = "/v1/models";

/**
 * The models of a file: each followed by the name that asks it not to think, then what backends list themselves.
 * @returns undefined if the request asks for something else
 * @throws ProxyError for one model that is not listed, or that the key may not use
 */
export function respondWithModels(
  asked: {
    request: Pick<Request, "method" | "headers">;
    /** The URL's pathname. */
    path: string;
    /** Whether the key may use a model of this name. */
    isAllowed: (name: string) => boolean;
    wall: WallClock;
  },
  names: ModelNames,
  backendModels: Pick<BackendModels, "findEntry">,
): Response | undefined {
  const { request, path, isAllowed, wall } = asked;
  if (request.method !== "GET" && request.method !== "HEAD") return undefined;
  const name = modelIdIn(path);
  if (name === undefined && canonical(path) !== listPath) return undefined;
  const mayUse = ({ id, model }: Listed): boolean => isAllowed(id) || isAllowed(model);
  const isAnthropic = request.headers.has("anthropic-version");
  // Models that no backend has listed were created now.
  const createdSeconds = Math.floor(wall() / 1000);
  const textOf = (one: Listed): string =>
    JSON.stringify((isAnthropic ? anthropicEntry : openAiEntry)(one, createdSeconds));
  const all = listModels(names, backendModels);
  if (name !== undefined) {
    const lower = name.toLowerCase();
    const found = all.find(({ id }) => id.toLowerCase() === lower);
    if (found === undefined ? !isAllowed(name) : !mayUse(found)) throw new ProxyError("model_not_allowed");
    if (found === undefined) throw modelNotFound(name, listModelNames(names).filter(isAllowed));
    return jsonResponse(textOf(found));
  }
  const listed = all.filter((one) => one.isUnlisted !== true && mayUse(one));
  const data = `"data":[${listed.map(textOf).join(",")}]`;
  if (!isAnthropic) return jsonResponse(`{"object":"list",${data}}`);
  const [first, last] = [listed.at(0), listed.at(-1)].map((one) => JSON.stringify(one?.id ?? null));
  return jsonResponse(`{${data},"has_more":false,"first_id":${first},"last_id":${last}}`);
}

const jsonResponse = (json: string): Response =>
  new Response(json, { headers: { "content-type": "application/json", "x-content-type-options": "nosniff" } });

function listModels({ catalog, discovered }: ModelNames, { findEntry }: Pick<BackendModels, "findEntry">): Listed[] {
  const { models, otherModels, listAliases } = catalog;
  /** Of several backends, the request may go to the one with the shortest context. */
  const knownOf = (
    backends: readonly string[],
    servedAs: string,
    { contextTokens, maxOutputTokens, kind }: Pick<Model, "contextTokens" | "maxOutputTokens" | "kind">,
  ): Omit<Listed, "id" | "model"> => {
    const entries = backends.map((one) => findEntry([one], servedAs)).filter((one) => one !== undefined);
    const known = entries.map((one) => readEntry(one));
    return {
      entry: entries[0],
      contextTokens: Math.min(contextTokens, ...known.map(({ contextLength }) => contextLength)),
      maxOutputTokens,
      isEmbedding: kind === "embedding" || known[0]?.isEmbedding === true,
    };
  };
  const ofFile = models.flatMap((model) => {
    const known = knownOf(model.backends, model.servedAs, model);
    return namesOf(model, listAliases).map((one) => Object.assign(one, { model: model.name }, known));
  });
  const ofBackends = (discovered?.list() ?? []).map(({ name, backends }): Listed =>
    Object.assign({ id: name, model: name }, knownOf(backends, name, otherModels)),
  );
  return [...ofFile, ...ofBackends];
}

/** A prefix is not a name that a client could ask for. */
const namesOf = (model: Model, listAliases: boolean): Pick<Listed, "id" | "isUnlisted">[] => [
  { id: model.name },
  ...(model.reasoning ? [{ id: nonThinkingNameOf(model) }] : []),
  ...model.aliases.filter((alias) => !alias.endsWith("*")).map((id) => ({ id, isUnlisted: !listAliases })),
];

/** Front ends offer what has an output for chat. */
const limitsOf = ({ contextTokens, maxOutputTokens, isEmbedding }: Listed): object => ({
  context_length: contextTokens,
  max_output_tokens: isEmbedding ? undefined : maxOutputTokens,
  ...(isEmbedding && { kind: "embedding" }),
});

function openAiEntry(one: Listed, created: number): object {
  const { id, entry = { id, object: "model", created, owned_by: "tollgate" } } = one;
  return editEntry(entry, { id, ...limitsOf(one) });
}

function anthropicEntry(one: Listed, createdSeconds: number): object {
  const { id, model, entry } = one;
  const { created = createdSeconds, displayName } = readEntry(entry);
  const at = new Date(Math.min(Math.max(0, created * 1000), maxDateMs));
  return {
    type: "model",
    id,
    display_name: (id === model ? displayName : undefined) ?? id,
    created_at: at.toISOString(),
    ...limitsOf(one),
  };
}

/** A date beyond it has no text. */
const maxDateMs = 8.64e15;

/** An error names no more than these, and no more of the name that is asked for. */
const maxListed = 50;
const maxAskedLength = 200;

/** @param names of all models that the key may use */
export function modelNotFound(asked: string, names: readonly string[]): ProxyError {
  const listed = names.slice(0, maxListed).join(", ");
  const there = names.length > maxListed ? `${listed} and ${names.length - maxListed} more` : listed;
  const name = JSON.stringify(asked.slice(0, maxAskedLength));
  return new ProxyError("model_not_found", {
    message: `There is no model ${name}${there === "" ? "" : `; there are: ${there}`}.`,
  });
}
