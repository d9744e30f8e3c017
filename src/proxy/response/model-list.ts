import type { WallClock } from "../../time/clock.ts";
import { createJsonEditor, type JsonEditor } from "../json/edit.ts";
import { findString } from "../json/decode.ts";
import { readJson } from "../json/read.ts";
import { createRepeatedSlot, createSlot, type JsonSlot } from "../json/slots.ts";
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
  const read = alias === undefined ? undefined : readList(list, [alias, models.reasoningModel ?? ""]);
  if (alias === undefined || read === undefined || read.entries[0] !== undefined) return undefined;
  const editor = createJsonEditor();
  editor.appendElement(read.data, newEntry(read.entries[1], alias, createdSeconds));
  return editedText(editor, Buffer.from(list));
}

/** The synthetic model's own entry, for `GET /v1/models/<family>-nonthinking`; undefined as for the list. */
export function findNonThinkingModel(list: string, models: ServedModels, createdSeconds: number): string | undefined {
  const alias = findAlias(models);
  const read = alias === undefined ? undefined : readList(list, [alias, models.reasoningModel ?? ""]);
  if (alias === undefined || read === undefined) return undefined;
  const [own, original] = read.entries;
  return own ?? newEntry(original, alias, createdSeconds);
}

function findAlias(models: ServedModels): string | undefined {
  return models.reasoningModel !== undefined && isReasoningModelServed(models)
    ? nonThinkingAlias(models.reasoningModel)
    : undefined;
}

interface ModelList {
  data: JsonSlot;
  /** For each name asked for, the text of the first entry of that name. */
  entries: (string | undefined)[];
}

function readList(list: string, names: readonly string[]): ModelList | undefined {
  const bytes = Buffer.from(list);
  const entries: (string | undefined)[] = [];
  const id = createSlot();
  const entry = createSlot({
    members: { id },
    onValue() {
      const given = entry.kind === "object" ? findString(bytes, id) : undefined;
      if (given === undefined) return;
      for (const [index, name] of names.entries()) {
        if (sameName(given, name)) entries[index] ??= bytes.toString("utf8", entry.start, entry.end);
      }
    },
  });
  const data = createSlot({ element: entry, onStart: () => (entries.length = 0) });
  const root = createSlot({ members: { data } });
  const isList = readJson(bytes, root) && root.kind === "object" && data.kind === "array";
  return isList ? { data, entries } : undefined;
}

function newEntry(original: string | undefined, id: string, created: number): string {
  if (original === undefined) return JSON.stringify({ id, object: "model", created, owned_by: "tollgate" });
  const bytes = Buffer.from(original);
  const ids = createRepeatedSlot(64);
  const editor = createJsonEditor();
  if (readJson(bytes, createSlot({ members: { id: ids.slot } }))) {
    for (const given of ids.values) editor.replace(given, JSON.stringify(id));
  }
  return editedText(editor, bytes) ?? original;
}

function editedText(editor: JsonEditor, bytes: Uint8Array): string | undefined {
  const edited = editor.apply(bytes);
  return edited === undefined ? undefined : Buffer.from(edited).toString();
}
