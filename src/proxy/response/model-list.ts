import type { WallClock } from "../../time/clock.ts";
import { JsonEditor } from "../json/edit.ts";
import { readJson } from "../json/read.ts";
import { createSlot } from "../json/slots.ts";
import { canonical } from "../rewrite/endpoint.ts";
import { nonThinkingNameOf } from "../rewrite/model-names.ts";
import { isEntry, readObject } from "./model-entry.ts";
import type { Catalog, Model } from "../../domain/models.ts";

type ServedModels = Pick<Catalog, "models">;

type Bytes = Uint8Array<ArrayBuffer>;

/** How a GET of the model list or of the synthetic model is served. */
export interface ModelListRequest {
  /** What the upstream is asked for. */
  pathAndQuery: string;
  /** Turns the body of the upstream's 200 into the client's; undefined to leave it as it is. */
  edit: (list: Bytes) => Bytes | undefined;
  /** A list that cannot be edited must not be shown. */
  mustEdit: boolean;
}

const listPath = "/v1/models";

/**
 * How a request below `/v1/models` is served. The list gets an entry that no backend knows, and a request for that entry asks
 * the backend for its list.
 * @param asked `pathAndQuery` is the path of `/v1/models`, or one below it
 * @param isAllowed undefined for a key that may use all models
 * @returns undefined if it passes as it is
 */
export function resolveModelList(
  asked: { method: string; pathAndQuery: string; models: ServedModels; wall: WallClock },
  isAllowed: ((name: string) => boolean) | undefined,
): ModelListRequest | undefined {
  const { method, pathAndQuery, models, wall } = asked;
  const [path = ""] = pathAndQuery.split("?", 1);
  const createdSeconds = Math.floor(wall() / 1000);
  const isAppended = method === "GET" && path === listPath && findAlias(models) !== undefined;
  const append = (list: Bytes): Bytes | undefined =>
    isAppended ? withNonThinkingModel(list, models, createdSeconds) : undefined;
  if (method === "GET" && isNonThinkingModelPath(path, models)) {
    const find = (list: Bytes): Bytes | undefined => findNonThinkingModel(list, models, createdSeconds);
    return { pathAndQuery: listPath, edit: find, mustEdit: isAllowed !== undefined };
  }
  if (isAllowed === undefined) return isAppended ? { pathAndQuery, edit: append, mustEdit: false } : undefined;
  if (canonical(path) !== listPath) return undefined;
  return { pathAndQuery, edit: (list) => withAllowedModels(append(list) ?? list, isAllowed), mustEdit: true };
}

/**
 * Whether `GET path` asks for the synthetic model.
 * @param path the URL's pathname; a slash in the model's name may be encoded or not
 */
export function isNonThinkingModelPath(path: string, models: ServedModels): boolean {
  const alias = findAlias(models);
  if (alias === undefined || !path.startsWith(`${listPath}/`)) return false;
  try {
    return sameName(decodeURIComponent(path.slice(listPath.length + 1)), alias);
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
export function withNonThinkingModel(list: Bytes, models: ServedModels, createdSeconds: number): Bytes | undefined {
  const read = readNonThinkingModel(list, models, createdSeconds);
  const data = createSlot();
  if (read === undefined || read.isListed || !readJson(list, createSlot({ members: { data } }))) return undefined;
  const editor = new JsonEditor();
  editor.appendElement(data, JSON.stringify(read.entry));
  return Buffer.concat(editor.apply(list) ?? []);
}

/** The synthetic model's own entry, for `GET /v1/models/<family>-nonthinking`; undefined as for the list. */
export function findNonThinkingModel(list: Bytes, models: ServedModels, createdSeconds: number): Bytes | undefined {
  const read = readNonThinkingModel(list, models, createdSeconds);
  return read && Buffer.from(JSON.stringify(read.entry));
}

/** Its entry: of the list, or else as the list would get it. Undefined if the reasoning model is not served, or this is not a list. */
function readNonThinkingModel(list: Bytes, models: ServedModels, created: number) {
  const model = findReasoning(models);
  const data = readObject(list)?.["data"];
  if (model === undefined || !Array.isArray(data)) return undefined;
  const alias = nonThinkingNameOf(model);
  const find = (wanted: string) =>
    data.filter(isEntry).find(({ id }) => typeof id === "string" && sameName(id, wanted));
  const listed = find(alias);
  const made = { ...(find(model.name) ?? { id: alias, object: "model", created, owned_by: "tollgate" }), id: alias };
  return { isListed: listed !== undefined, entry: listed ?? made };
}

const findReasoning = ({ models }: ServedModels): Model | undefined => models.find(({ reasoning }) => reasoning);

/** The synthetic model; undefined if the reasoning model is not served. */
function findAlias(models: ServedModels): string | undefined {
  const model = findReasoning(models);
  return model && nonThinkingNameOf(model);
}

const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

/**
 * The backend's model list with the allowed entries only. Undefined if this is not a list. Only members that hold no model's
 * name are kept: `first_id` of Anthropic's list does.
 * @param list the body of a response to `GET /v1/models`
 */
export function withAllowedModels(list: Bytes, isAllowed: (name: string) => boolean): Bytes | undefined {
  const { object, has_more, data, models } = readObject(list) ?? {};
  if (!Array.isArray(data) && !Array.isArray(models)) return undefined;
  const plain = (value: unknown) => (typeof value === "object" ? undefined : value);
  const kept = {
    object: plain(object),
    has_more: plain(has_more),
    data: allowedOf(data, ["id"], isAllowed),
    // llama.cpp lists its models a second time.
    models: allowedOf(models, ["id", "name", "model"], isAllowed),
  };
  return Buffer.from(JSON.stringify(kept));
}

/** The entries of which at least one member is a name, and all names are allowed. */
function allowedOf(entries: unknown, members: readonly string[], isAllowed: (name: string) => boolean) {
  if (!Array.isArray(entries)) return undefined;
  return entries.filter(isEntry).filter((entry) => {
    const names = members.map((member) => entry[member]).filter((name) => typeof name === "string");
    return names.length > 0 && names.every(isAllowed);
  });
}
