import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { JsonEditor } from "../../../src/proxy/json/edit.ts";
import { readJson } from "../../../src/proxy/json/read.ts";
import { createRepeatedSlot, createSlot, type JsonSlot, type RepeatedSlot } from "../../../src/proxy/json/slots.ts";
import { jsonText, objectText, stringText } from "../../support/json-text.ts";

interface Looked {
  root: JsonSlot;
  a: RepeatedSlot;
  text: JsonSlot;
  list: JsonSlot;
  inner: JsonSlot;
}

function edited(text: string, edit: (editor: JsonEditor, looked: Looked) => void): string | undefined {
  const bytes = Buffer.from(text);
  const looked = { a: createRepeatedSlot(100), text: createSlot(), list: createSlot(), inner: createSlot() };
  const root = createSlot({ members: { ...looked, a: looked.a.slot } });
  expect(readJson(bytes, root)).toBe(true);
  const editor = new JsonEditor();
  edit(editor, { ...looked, root });
  const result = editor.apply(bytes);
  return result === undefined ? undefined : Buffer.concat(result).toString();
}

test("an editor without edits has no result", () => {
  expect(edited('{"a":1}', () => {})).toBeUndefined();
});

test("text before a string is escaped, and the string's own escapes stay", () => {
  const text = '{"text" : "\\u0041\\/"}';
  const result = edited(text, (editor, looked) => editor.prependText(looked.text, 'say "hi"\n'));
  expect(result).toBe('{"text" : "say \\"hi\\"\\n\\u0041\\/"}');
});

test("edits made in any order are applied at their positions", () => {
  const result = edited('{"a":1,"list":[2],"inner":{}}', (editor, { root, inner, list, a }) => {
    editor.addMember(root, "z", "0");
    editor.addMember(inner, "y", "0");
    editor.prependElement(list, "0");
    for (const value of a.values) editor.replace(value, '"é long"');
  });
  expect(result).toBe('{"a":"é long","list":[0,2],"inner":{"y":0},"z":0}');
});

describe("for any text", () => {
  const name = fc.constantFrom("a", "b", "list", "text", "inner", "__proto__");
  const member = fc.tuple(stringText(name), jsonText);
  const body = fc.array(member, { maxLength: 8 }).chain((members) => objectText(members));

  test("the parsed result equals the edited parse", () => {
    const property = fc.property(body, (text) => {
      const before = JSON.parse(text) as Record<string, unknown>;
      // Names such as __proto__ must stay ordinary members on both sides.
      const expected = new Map(Object.entries(before)).set("new", [1]);
      if (expected.has("a")) expected.set("a", { b: 2 });
      const list = expected.get("list");
      if (Array.isArray(list)) expected.set("list", list.length > 0 ? [0, ...(list as unknown[]), 9] : [0]);
      const string = expected.get("text");
      if (typeof string === "string") expected.set("text", `"\n${string}`);
      const result = JSON.parse(edited(text, editEverything) ?? "") as Record<string, unknown>;
      expect(new Map(Object.entries(result))).toEqual(expected);
    });
    fc.assert(property, { numRuns: 1000 });
  });

  test("a member is removed wherever it stands, however often, and others are added to what is left", () => {
    const property = fc.property(body, (text) => {
      const expected = new Map(Object.entries(JSON.parse(text) as Record<string, unknown>));
      expected.delete("a");
      const result = edited(text, (editor, { root, a }) => {
        editor.removeMembers(Buffer.from(text), a.values.toReversed());
        editor.addMember(root, "new", "1");
        editor.addMember(root, "newer", "2");
      });
      const left = JSON.parse(result ?? "") as Record<string, unknown>;
      expect(new Map(Object.entries(left))).toEqual(expected.set("new", 1).set("newer", 2));
    });
    fc.assert(property, { numRuns: 1000 });
  });

  test("removing the edits restores the text", () => {
    const mark = "<edit>";
    const property = fc.property(body, (text) => {
      const marked = edited(text, (editor, { root, a, list }) => {
        const bytes = Buffer.from(text);
        for (const { start, end } of a.values) {
          editor.replace({ start, end }, `${mark}${bytes.toString("utf8", start, end)}${mark}`);
        }
        if (list.kind === "array") editor.prependElement(list, `${mark}+0${mark}`);
        editor.addMember(root, "new", `${mark}+1${mark}`);
      });
      const restored = (marked ?? "")
        .replace(/,?"new":<edit>\+1<edit>/, "")
        .replace(/<edit>\+0<edit>,?/, "")
        .replaceAll(mark, "");
      expect(restored).toBe(text);
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

function editEverything(editor: JsonEditor, { root, a, list, text }: Looked): void {
  for (const value of a.values) editor.replace(value, '{"b":2}');
  if (list.kind === "array") {
    editor.prependElement(list, "0");
    if (list.count > 0) editor.appendElement(list, "9");
  }
  if (text.kind === "string") editor.prependText(text, '"\n');
  editor.addMember(root, "new", "[1]");
}

test("an edited text is made of views of the original and what was inserted", () => {
  const bytes = Buffer.from("[ ]");
  const root = createSlot();
  expect(readJson(bytes, root)).toBe(true);
  const editor = new JsonEditor();
  editor.appendElement(root, "1");
  const pieces = editor.apply(bytes) ?? [];
  expect(pieces.map((piece) => Buffer.from(piece).toString())).toEqual(["[", "1", " ]"]);
  expect(pieces.map(({ buffer }) => buffer === bytes.buffer)).toEqual([true, false, true]);
});
