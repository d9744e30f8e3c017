import type { Key } from "./queries.ts";

/**
 * Whether a key's name contains the text, or its key begins or ends with it. The API gives only both ends, `abcd…wxyz`;
 * a whole key is found by them.
 * @param text in lower case
 */
export function matchesSearch(key: Pick<Key, "name" | "key">, text: string): boolean {
  if (key.name.toLowerCase().includes(text)) return true;
  const [start = "", end = ""] = key.key.toLowerCase().split("…");
  if (text.length > start.length + end.length) return start !== "" && text.startsWith(start) && text.endsWith(end);
  return key.key.toLowerCase().includes(text) || start.startsWith(text) || end.endsWith(text);
}
