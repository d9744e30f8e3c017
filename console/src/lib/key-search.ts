interface Searched {
  name: string;
  key: string;
  owner?: string | null;
  note?: string | null;
  tags?: readonly string[];
}

/**
 * Whether a key's name, owner, note or tags contain the text, or its key begins or ends with it. The API gives only both
 * ends, `abcd…wxyz`; a whole key is found by them.
 * @param text in lower case
 */
export function matchesSearch(key: Searched, text: string): boolean {
  const { name, owner = null, note = null, tags = [] } = key;
  if ([name, owner ?? "", note ?? "", ...tags].some((field) => field.toLowerCase().includes(text))) return true;
  const [start = "", end = ""] = key.key.toLowerCase().split("…");
  if (text.length > start.length + end.length) return start !== "" && text.startsWith(start) && text.endsWith(end);
  return key.key.toLowerCase().includes(text) || start.startsWith(text) || end.endsWith(text);
}
