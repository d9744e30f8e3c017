import type { WallClock } from "../../time/clock.ts";
import { findJson, findString } from "../json/bytes.ts";
import { JsonEditor } from "../json/edit.ts";
import { readJson } from "../json/read.ts";
import { createRepeatedSlot, createSlot, type JsonSlot } from "../json/slots.ts";
import { canonical } from "../rewrite/endpoint.ts";
import { nonThinkingNameOf } from "../rewrite/model-names.ts";
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

interface ModelListAsked {
  method: string;
  /** The path of `/v1/models`, or one below it. */
  pathAndQuery: string;
  models: ServedModels;
  wall: WallClock;
}

/**
 * How a request below `/v1/models` is served.
 * @param isAllowed undefined for a key that may use all models
 * @returns undefined if it passes as it is
 */
export function resolveModelList(
  asked: ModelListAsked,
  isAllowed: ((name: string) => boolean) | undefined,
): ModelListRequest | undefined {
  const forAll = resolveForAll(asked);
  if (isAllowed === undefined) return forAll;
  const { pathAndQuery } = asked;
  const [path = ""] = pathAndQuery.split("?", 1);
  // The synthetic model's entry comes out of the list.
  if (canonical(path) !== "/v1/models") return forAll && { ...forAll, mustEdit: true };
  return {
    pathAndQuery,
    edit: (list) => withAllowedModels(forAll?.edit(list) ?? list, isAllowed),
    mustEdit: true,
  };
}

/** The model list gets an entry that no backend knows, and a request for that entry asks the backend for its list. */
function resolveForAll({ method, pathAndQuery, models, wall }: ModelListAsked): ModelListRequest | undefined {
  if (method !== "GET" || findAlias(models) === undefined) return undefined;
  const [path = ""] = pathAndQuery.split("?", 1);
  const createdSeconds = Math.floor(wall() / 1000);
  if (path === "/v1/models")
    return { pathAndQuery, edit: (list) => withNonThinkingModel(list, models, createdSeconds), mustEdit: false };
  if (!isNonThinkingModelPath(path, models)) return undefined;
  const edit = (list: Bytes): Bytes | undefined => findNonThinkingModel(list, models, createdSeconds);
  return { pathAndQuery: "/v1/models", edit, mustEdit: false };
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
export function withNonThinkingModel(list: Bytes, models: ServedModels, createdSeconds: number): Bytes | undefined {
  const read = readList(list, models);
  if (read === undefined || read.synthetic !== undefined) return undefined;
  const editor = new JsonEditor();
  editor.appendElement(read.data, newEntry(read, createdSeconds));
  return Buffer.concat(editor.apply(list) ?? []);
}

/** The synthetic model's own entry, for `GET /v1/models/<family>-nonthinking`; undefined as for the list. */
export function findNonThinkingModel(list: Bytes, models: ServedModels, createdSeconds: number): Bytes | undefined {
  const read = readList(list, models);
  return read === undefined ? undefined : Buffer.from(read.synthetic ?? newEntry(read, createdSeconds));
}

const findReasoning = ({ models }: ServedModels): Model | undefined => models.find(({ reasoning }) => reasoning);

/** The synthetic model; undefined if the reasoning model is not served. */
function findAlias(models: ServedModels): string | undefined {
  const model = findReasoning(models);
  return model && nonThinkingNameOf(model);
}

const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

interface ModelList {
  alias: string;
  data: JsonSlot;
  /** The JSON of the first entry named as the alias, and as the reasoning model. */
  synthetic: string | undefined;
  reasoning: string | undefined;
}

/** Undefined if the reasoning model is not served, or this is not a list. */
function readList(bytes: Bytes, models: ServedModels): ModelList | undefined {
  const model = findReasoning(models);
  if (model === undefined) return undefined;
  const alias = nonThinkingNameOf(model);
  const id = createSlot();
  const entry = createSlot({
    members: { id },
    onValue() {
      const name = entry.kind === "object" ? findString(bytes, id) : undefined;
      if (name === undefined) return;
      if (sameName(name, alias)) list.synthetic ??= findJson(bytes, entry);
      if (sameName(name, model.name)) list.reasoning ??= findJson(bytes, entry);
    },
  });
  const data = createSlot({
    element: entry,
    onStart() {
      list.synthetic = undefined;
      list.reasoning = undefined;
    },
  });
  const list: ModelList = { alias, data, synthetic: undefined, reasoning: undefined };
  const root = createSlot({ members: { data } });
  return readJson(bytes, root) && root.kind === "object" && data.kind === "array" ? list : undefined;
}

function newEntry({ alias, reasoning }: ModelList, created: number): string {
  if (reasoning === undefined) {
    return JSON.stringify({ id: alias, object: "model", created, owned_by: "tollgate" });
  }
  const bytes = Buffer.from(reasoning);
  const ids = createRepeatedSlot(maxDuplicates);
  readJson(bytes, createSlot({ members: { id: ids.slot } }));
  const editor = new JsonEditor();
  for (const id of ids.values) editor.replace(id, JSON.stringify(alias));
  return Buffer.concat(editor.apply(bytes) ?? [bytes]).toString();
}

const maxDuplicates = 64;

/** Members that hold no model's name. Others might: `first_id` of Anthropic's list does. */
const plainMembers = ["object", "has_more"] as const;

/**
 * The backend's model list with the allowed entries only, every byte of them as it came. Undefined if this is not a list.
 * @param list the body of a response to `GET /v1/models`
 */
export function withAllowedModels(list: Bytes, isAllowed: (name: string) => boolean): Bytes | undefined {
  const data = watchEntries(list, ["id"], isAllowed);
  // llama.cpp lists its models a second time.
  const models = watchEntries(list, ["id", "name", "model"], isAllowed);
  const plain = { object: createSlot(), has_more: createSlot() };
  const root = createSlot({ members: { ...plain, data: data.slot, models: models.slot } });
  if (!readJson(list, root) || root.kind !== "object") return undefined;
  if (data.slot.kind !== "array" && models.slot.kind !== "array") return undefined;
  const members = plainMembers.flatMap((name) => {
    const { kind } = plain[name];
    const json = kind === "string" || kind === "literal" ? findJson(list, plain[name]) : undefined;
    return json === undefined ? [] : [`"${name}":${json}`];
  });
  for (const [name, { slot, kept }] of Object.entries({ data, models })) {
    if (slot.kind === "array") members.push(`"${name}":[${kept.join(",")}]`);
  }
  return Buffer.from(`{${members.join(",")}}`);
}

/** Collects the entries of an array of which at least one member is a name, and all names are allowed. */
function watchEntries(list: Bytes, names: readonly string[], isAllowed: (name: string) => boolean) {
  const kept: string[] = [];
  const members = Object.fromEntries(names.map((name) => [name, createSlot()]));
  const entry: JsonSlot = createSlot({
    members,
    onValue() {
      if (entry.kind !== "object") return;
      const found = Object.values(members).flatMap((member) => findString(list, member) ?? []);
      const json = found.length > 0 && found.every(isAllowed) ? findJson(list, entry) : undefined;
      if (json !== undefined) kept.push(json);
    },
  });
  const slot = createSlot({
    element: entry,
    onStart() {
      kept.length = 0;
    },
  });
  return { slot, kept };
}
