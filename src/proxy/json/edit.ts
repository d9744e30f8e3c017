import type { JsonArrayNode, JsonNode, JsonObjectNode } from "./read.ts";

/** Collects edits to a JSON text and applies them at once; every byte outside them stays as it is. */
export interface JsonEditor {
  replace(node: JsonNode, json: string): void;
  /** After the object's last member. The object must not have the name yet. */
  addMember(object: JsonObjectNode, name: string, json: string): void;
  /** Before all other elements. An empty array can be given one element, at either end. */
  prependElement(array: JsonArrayNode, json: string): void;
  /** After all other elements. */
  appendElement(array: JsonArrayNode, json: string): void;
  /** Before a string's first character. */
  prependText(string: JsonNode, text: string): void;
  /** Undefined if nothing was edited. */
  result(): string | undefined;
}

interface Edit {
  start: number;
  end: number;
  json: string;
}

/** @param text the text that the nodes were read from */
export function createJsonEditor(text: string): JsonEditor {
  const edits: Edit[] = [];
  /** Objects that were given a member: the next one needs a comma even if the text has `{}`. */
  const filled = new Set<JsonObjectNode>();
  const insert = (at: number, json: string): void => void edits.push({ start: at, end: at, json });

  return {
    replace: ({ start, end }, json) => void edits.push({ start, end, json }),
    addMember(object, name, json) {
      const separator = isEmpty(object) && !filled.has(object) ? "" : ",";
      filled.add(object);
      insert(object.tail, `${separator}${JSON.stringify(name)}:${json}`);
    },
    prependElement: (array, json) => insert(array.start + 1, isEmpty(array) ? json : `${json},`),
    appendElement: (array, json) => insert(array.tail, isEmpty(array) ? json : `,${json}`),
    prependText: (string, prefix) => insert(string.start + 1, JSON.stringify(prefix).slice(1, -1)),
    result: () => (edits.length === 0 ? undefined : applyEdits(text, edits)),
  };
}

/** The tail of an empty container is right after its opening bracket. */
function isEmpty(container: JsonArrayNode | JsonObjectNode): boolean {
  return container.tail === container.start + 1;
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  let edited = "";
  let from = 0;
  // Sorting is stable: insertions at one position stay in the order of their calls.
  for (const { start, end, json } of edits.toSorted((a, b) => a.start - b.start)) {
    edited += text.slice(from, start) + json;
    from = end;
  }
  return edited + text.slice(from);
}
