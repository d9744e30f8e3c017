import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createJsonEditor, type JsonEditor } from "../../../src/proxy/json/edit.ts";
import {
  findMember,
  type JsonArrayNode,
  type JsonObjectNode,
  listMembers,
  objectShape,
  readJson,
} from "../../../src/proxy/json/read.ts";
import { jsonText, objectText, stringText } from "../../support/json-text.ts";

const shape = objectShape({ a: {}, text: {}, list: { elements: {} }, inner: objectShape({}) });

function edited(text: string, edit: (editor: JsonEditor, root: JsonObjectNode) => void): string | undefined {
  const editor = createJsonEditor(text);
  edit(editor, readJson(text, shape) as JsonObjectNode);
  return editor.result();
}

test("an editor without edits has no result", () => {
  expect(edited('{"a":1}', () => {})).toBeUndefined();
});

describe("a member is added", () => {
  const cases: [string, string][] = [
    ["{}", '{"b":true}'],
    ["{ }", '{"b":true }'],
    ['{"a":1}', '{"a":1,"b":true}'],
    ['{\n  "a" : 1\n}', '{\n  "a" : 1,"b":true\n}'],
  ];
  test.each(cases)("to %j", (text, expected) => {
    expect(edited(text, (editor, root) => editor.addMember(root, "b", "true"))).toBe(expected);
  });

  test("after another, with one comma between them, also in an empty object", () => {
    const addTwo = (editor: JsonEditor, root: JsonObjectNode) => {
      editor.addMember(root, "b", "1");
      editor.addMember(root, "c", "2");
    };
    expect(edited("{}", addTwo)).toBe('{"b":1,"c":2}');
    expect(edited('{"a":0}', addTwo)).toBe('{"a":0,"b":1,"c":2}');
  });
});

describe("elements are added at both ends", () => {
  const cases: [string, string, string][] = [
    ["[]", "[0]", "[9]"],
    ["[ ]", "[0 ]", "[9 ]"],
    ["[ 1 ]", "[0, 1 ]", "[ 1,9 ]"],
    ["[1,2]", "[0,1,2]", "[1,2,9]"],
  ];
  test.each(cases)("of %j", (list, prepended, appended) => {
    const listOf = (root: JsonObjectNode) => findMember(root, "list") as JsonArrayNode;
    const text = `{"list":${list}}`;
    expect(edited(text, (editor, root) => editor.prependElement(listOf(root), "0"))).toBe(`{"list":${prepended}}`);
    expect(edited(text, (editor, root) => editor.appendElement(listOf(root), "9"))).toBe(`{"list":${appended}}`);
  });
});

test("text before a string is escaped, and the string's own escapes stay", () => {
  const text = '{"text" : "\\u0041\\/"}';
  const result = edited(text, (editor, root) => {
    const string = findMember(root, "text");
    if (string !== undefined) editor.prependText(string, 'say "hi"\n');
  });
  expect(result).toBe('{"text" : "say \\"hi\\"\\n\\u0041\\/"}');
});

test("edits made in any order are applied at their positions", () => {
  const result = edited('{"a":1,"list":[2],"inner":{}}', (editor, root) => {
    editor.addMember(root, "z", "0");
    editor.addMember(findMember(root, "inner") as JsonObjectNode, "y", "0");
    editor.prependElement(findMember(root, "list") as JsonArrayNode, "0");
    for (const node of listMembers(root, "a")) editor.replace(node, '"long"');
  });
  expect(result).toBe('{"a":"long","list":[0,2],"inner":{"y":0},"z":0}');
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

  test("removing the edits restores the text", () => {
    const mark = "<edit>";
    const property = fc.property(body, (text) => {
      const marked = edited(text, (editor, root) => {
        for (const node of listMembers(root, "a")) {
          editor.replace(node, mark + text.slice(node.start, node.end) + mark);
        }
        const list = findMember(root, "list");
        if (list?.kind === "array") editor.prependElement(list, `${mark}+0${mark}`);
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

function editEverything(editor: JsonEditor, root: JsonObjectNode): void {
  for (const node of listMembers(root, "a")) editor.replace(node, '{"b":2}');
  const list = findMember(root, "list");
  if (list?.kind === "array") {
    editor.prependElement(list, "0");
    if (list.elements.length > 0) editor.appendElement(list, "9");
  }
  const string = findMember(root, "text");
  if (string?.kind === "string") editor.prependText(string, '"\n');
  editor.addMember(root, "new", "[1]");
}
