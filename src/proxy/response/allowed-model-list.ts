import { findJson, findString } from "../json/decode.ts";
import { createJsonEditor } from "../json/edit.ts";
import { readJson } from "../json/read.ts";
import { createSlot } from "../json/slots.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * The backend's model list with the allowed entries only, every byte of them as it came. Undefined if this is not a list.
 * @param list the body of a 200 response to `GET /v1/models`
 */
export function withAllowedModels(list: Bytes, isAllowed: (name: string) => boolean): Bytes | undefined {
  let kept: string[] = [];
  const id = createSlot();
  const entry = createSlot({
    members: { id },
    onValue() {
      const name = entry.kind === "object" ? findString(list, id) : undefined;
      const json = name !== undefined && isAllowed(name) ? findJson(list, entry) : undefined;
      if (json !== undefined) kept.push(json);
    },
  });
  const data = createSlot({
    element: entry,
    onStart() {
      kept = [];
    },
  });
  const root = createSlot({ members: { data } });
  if (!readJson(list, root) || root.kind !== "object" || data.kind !== "array") return undefined;
  const editor = createJsonEditor();
  editor.replace(data, `[${kept.join(",")}]`);
  return Buffer.concat(editor.apply(list) ?? []);
}
