import type { WallClock } from "../../time/clock.ts";
import { createJsonEditor } from "../json/edit.ts";
import {
  findMember,
  findString,
  type JsonArrayNode,
  type JsonNode,
  listMembers,
  objectShape,
  readJson,
} from "../json/read.ts";
import { isReasoningModelServed, nonThinkingAlias, sameName } from "../rewrite/model-name.ts";
import type { RewriteRules } from "../rewrite/rules.ts";

export type ServedModels = Pick<RewriteRules, "servedModel" | "reasoningModel">;

/** How a GET of the model list or of the synthetic model is served. */
export interface ModelListRequest {
  /** What the upstream is asked for. */
  pathAndQuery: string;
  /** Turns the body of the upstream's 200 into the client's; undefined to leave it as it is. */
  edit: (list: string) => string | undefined;
}

/**
 * The model list gets an entry that no backend knows, and a request for that entry asks the backend for its list.
 * @returns undefined for every other request
 */
export function resolveModelList(
  method: string,
  pathAndQuery: string,
  models: ServedModels,
  wall: WallClock,
): ModelListRequest | undefined {
  if (method !== "GET" || findAlias(models) === undefined) return undefined;
  const [path = ""] = pathAndQuery.split("?", 1);
  const createdSeconds = Math.floor(wall() / 1000);
  if (path === "/v1/models")
    return { pathAndQuery, edit: (list) => withNonThinkingModel(list, models, createdSeconds) };
  if (!isNonThinkingModelPath(path, models)) return undefined;
  return { pathAndQuery: "/v1/models", edit: (list) => findNonThinkingModel(list, models, createdSeconds) };
}

const entryShape = objectShape({ id: {} });
const listShape = objectShape({ data: { elements: entryShape } });

/**
 * Whether `GET path` asks for the synthetic model.
 * @param path the URL's pathname; a slash in the model's name may be encoded or not
 */
export function isNonThinkingModelPath(path: string, models: ServedModels): boolean {
  const alias = findAlias(models);
  if (alias === undefined || !path.startsWith("/v1/models/")) return false;
  try {
    return sameName(decodeURIComponent(path.slice("/v1/models/".length)), alias);
  } catch {
    return false;
  }
}

/**
 * The backend's model list with the synthetic model at its end, every other byte as it came. Undefined if there is
 * nothing to append: the reasoning model is not served, the list has the entry already, or this is not a list.
 * @param list the body of a 200 response to `GET /v1/models`
 * @param createdSeconds for an entry that has no reasoning model's entry to copy, seconds since the epoch
 */
export function withNonThinkingModel(list: string, models: ServedModels, createdSeconds: number): string | undefined {
  const alias = findAlias(models);
  const data = alias === undefined ? undefined : findData(list);
  if (alias === undefined || data === undefined || findEntry(list, data, alias) !== undefined) return undefined;
  const editor = createJsonEditor(list);
  editor.appendElement(data, newEntry(list, data, models, createdSeconds));
  return editor.result();
}

/** The synthetic model's own entry, for `GET /v1/models/<family>-nonthinking`; undefined as for the list. */
export function findNonThinkingModel(list: string, models: ServedModels, createdSeconds: number): string | undefined {
  const alias = findAlias(models);
  const data = alias === undefined ? undefined : findData(list);
  if (alias === undefined || data === undefined) return undefined;
  return findEntry(list, data, alias) ?? newEntry(list, data, models, createdSeconds);
}

function findAlias(models: ServedModels): string | undefined {
  return models.reasoningModel !== undefined && isReasoningModelServed(models)
    ? nonThinkingAlias(models.reasoningModel)
    : undefined;
}

function findData(list: string): JsonArrayNode | undefined {
  const root = readJson(list, listShape);
  const data = root?.kind === "object" ? findMember(root, "data") : undefined;
  return data?.kind === "array" ? data : undefined;
}

/** The entry's text. */
function findEntry(list: string, data: JsonArrayNode, id: string): string | undefined {
  const entry = data.elements.find((element) => {
    const given = findId(list, element);
    return given !== undefined && sameName(given, id);
  });
  return entry === undefined ? undefined : list.slice(entry.start, entry.end);
}

function findId(text: string, entry: JsonNode): string | undefined {
  return entry.kind === "object" ? findString(text, findMember(entry, "id")) : undefined;
}

function newEntry(list: string, data: JsonArrayNode, models: ServedModels, created: number): string {
  const id = nonThinkingAlias(models.reasoningModel ?? "");
  const original = findEntry(list, data, models.reasoningModel ?? "");
  const entry = original === undefined ? undefined : readJson(original, entryShape);
  if (original === undefined || entry?.kind !== "object") {
    return JSON.stringify({ id, object: "model", created, owned_by: "tollgate" });
  }
  const editor = createJsonEditor(original);
  for (const given of listMembers(entry, "id")) editor.replace(given, JSON.stringify(id));
  return editor.result() ?? original;
}
