import { findJson, findNumber, findString } from "../json/bytes.ts";
import { createJsonEditor } from "../json/edit.ts";
import { readJson } from "../json/read.ts";
import { createRepeatedSlot, createSlot } from "../json/slots.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** More and longer ones than any backend has: all are gone through for each list that a client asks for. */
const [maxEntries, maxIdLength] = [2000, 400];

/** The entries of a backend's list of models by their id, as the backend sent them. Undefined if this is not a list. */
export function readModelEntries(list: Bytes): ReadonlyMap<string, string> | undefined {
  const entries = new Map<string, string>();
  const id = createSlot();
  const entry = createSlot({
    members: { id },
    onValue() {
      if (entries.size >= maxEntries) return;
      const name = (entry.kind === "object" ? findString(list, id) : undefined) ?? "";
      if (name === "" || name.length > maxIdLength || entries.has(name)) return;
      const json = findJson(list, entry);
      if (json !== undefined) entries.set(name, json);
    },
  });
  const data = createSlot({ element: entry, onStart: () => entries.clear() });
  const root = createSlot({ members: { data } });
  return readJson(list, root) && root.kind === "object" && data.kind === "array" ? entries : undefined;
}

/** What our lists say of a model besides what its backend says. */
export interface EntryFields {
  id: string;
  context_length: number;
  max_output_tokens: number;
}

const maxDuplicates = 64;

/** Reads entries once, and not for each list that a client asks for: 1,000 of them take 50 ms. */
export interface EntryReader {
  edited: typeof editEntry;
  read: typeof readEntry;
}

/** As many as two backends list. */
const maxRemembered = 2 * maxEntries;

export function createEntryReader(): EntryReader {
  const [edited, read] = [createMemory<string>(), createMemory<KnownOfEntry>()];
  return {
    edited: (json, fields) => edited(Object.values(fields).join("\n"), json, () => editEntry(json, fields)),
    read: (json) => (json === undefined ? nothingKnown : read(json, json, () => readEntry(json))),
  };
}

function createMemory<T>(): (key: string, json: string, make: () => T) => T {
  const remembered = new Map<string, { json: string; made: T }>();
  return (key, json, make) => {
    const found = remembered.get(key);
    if (found?.json === json) return found.made;
    if (remembered.size >= maxRemembered) remembered.clear();
    const made = make();
    remembered.set(key, { json, made });
    return made;
  };
}

/** A backend's entry with these members in place of its own, every other byte as it came. */
export function editEntry(json: string, fields: EntryFields): string {
  const bytes = Buffer.from(json);
  const slots = Object.fromEntries(Object.keys(fields).map((name) => [name, createRepeatedSlot(maxDuplicates)]));
  const root = createSlot({
    members: Object.fromEntries(Object.entries(slots).map(([name, { slot }]) => [name, slot])),
  });
  if (!readJson(bytes, root)) return json;
  const editor = createJsonEditor();
  for (const [name, value] of Object.entries(fields)) {
    const values = slots[name]?.values ?? [];
    if (values.length === 0) editor.addMember(root, name, JSON.stringify(value));
    for (const one of values) editor.replace(one, JSON.stringify(value));
  }
  return Buffer.concat(editor.apply(bytes) ?? [bytes]).toString();
}

/** What a backend says of a model itself. */
export interface KnownOfEntry {
  /** In tokens. */
  contextLength: number | undefined;
  /** Epoch seconds. */
  created: number | undefined;
  displayName: string | undefined;
}

const nothingKnown: KnownOfEntry = { contextLength: undefined, created: undefined, displayName: undefined };

/** @param json undefined if no backend has listed the model */
export function readEntry(json: string | undefined): KnownOfEntry {
  if (json === undefined) return nothingKnown;
  const bytes = Buffer.from(json);
  const [context, longest, created, display] = [createSlot(), createSlot(), createSlot(), createSlot()];
  const members = { context_length: context, max_model_len: longest, created, display_name: display };
  readJson(bytes, createSlot({ members }));
  return {
    contextLength: findNumber(bytes, context) ?? findNumber(bytes, longest),
    created: findNumber(bytes, created),
    displayName: findString(bytes, display),
  };
}
