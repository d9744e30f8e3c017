import { parseJson } from "../../domain/json.ts";

/** What a backend says of a model. */
export type ModelEntry = Readonly<Record<string, unknown>>;

/** More and longer ones than any backend has: all are gone through for each list that a client asks for. */
const [maxEntries, maxIdLength] = [2000, 400];

export const isEntry = (value: unknown): value is ModelEntry =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Undefined if it is no JSON, or no object. */
export function readObject(body: Uint8Array<ArrayBuffer>): ModelEntry | undefined {
  const read = parseJson(new TextDecoder().decode(body));
  return isEntry(read) ? read : undefined;
}

/** The entries of a backend's list of models by their id. Undefined if this is not a list. */
export function readModelEntries(list: Uint8Array<ArrayBuffer>): ReadonlyMap<string, ModelEntry> | undefined {
  const data = readObject(list)?.["data"];
  if (!Array.isArray(data)) return undefined;
  const entries = new Map<string, ModelEntry>();
  for (const entry of data.filter(isEntry)) {
    if (entries.size >= maxEntries) break;
    const { id } = entry;
    if (typeof id !== "string" || id === "" || id.length > maxIdLength || entries.has(id)) continue;
    entries.set(id, entry);
  }
  return entries;
}

/** Where the host keeps a model, and how it was started: vLLM and llama.cpp tell their clients. */
const ofHost = { root: undefined, parent: undefined, path: undefined, status: undefined } as const;

/** A backend's entry with these members in place of its own. */
export const editEntry = (entry: ModelEntry, fields: object): object => ({ ...entry, ...ofHost, ...fields });

/** What a backend says of a model itself. */
interface KnownOfEntry {
  /** In tokens: the smallest that it says. */
  contextLength: number;
  /** Epoch seconds. */
  created: number | undefined;
  displayName: string | undefined;
  isEmbedding: boolean;
}

export function readEntry(entry: ModelEntry = {}): KnownOfEntry {
  const { context_length: context, max_model_len: longest, meta, created, display_name: displayName } = entry;
  const lengths = [context, longest, isEntry(meta) ? meta["n_ctx"] : undefined];
  const kinds = ["kind", "type", "mode", "task", "model_type", "capabilities"].flatMap((name) => entry[name]);
  const says = (word: RegExp): boolean => kinds.some((kind) => typeof kind === "string" && word.test(kind));
  return {
    contextLength: Math.min(
      ...lengths.filter((length) => Number.isSafeInteger(length) && Number(length) > 0).map(Number),
    ),
    created: typeof created === "number" ? created : undefined,
    displayName: typeof displayName === "string" ? displayName : undefined,
    isEmbedding: says(/^embed/i) && !says(/chat|complet|generat/i),
  };
}
