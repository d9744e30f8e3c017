import { findJson, findString } from "../json/bytes.ts";
import { readJson } from "../json/read.ts";
import { createSlot, type JsonSlot } from "../json/slots.ts";

type Bytes = Uint8Array<ArrayBuffer>;

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
