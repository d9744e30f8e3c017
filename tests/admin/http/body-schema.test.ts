import { describe, expect, test } from "bun:test";
import { Type as t } from "@sinclair/typebox";
import {
  bodyParser,
  checkedBy,
  cleanText,
  csrfField,
  optionalText,
  text,
} from "../../../src/admin/http/body-schema.ts";
import type { JsonObject } from "../../../src/admin/http/body.ts";
import { ApiError } from "../../../src/admin/http/errors.ts";
import { nullable } from "../../../src/admin/http/schemas.ts";

const isEven = (value: unknown) => (Number(value) % 2 === 0 ? undefined : "even must be even");
const schema = t.Object({
  name: text("name", { maxLength: 4 }),
  flag: t.Boolean({ error: () => "flag must be a boolean" }),
  note: t.Optional(nullable(optionalText("note", { maxLength: 4, multiline: true }))),
  even: t.Optional(nullable(checkedBy(isEven, t.Integer()))),
  list: t.Optional(t.Array(t.Object({ size: t.Integer({ minimum: 0 }) }))),
  _csrf: csrfField,
});
const parse = bodyParser(schema);
const valid = { name: "a", flag: true };

describe("a body's schema", () => {
  test.each([
    [{ flag: true }, "name is required"],
    [{ name: null, flag: true }, "name must be a string"],
    [{ name: " ", flag: true }, "name must not be empty"],
    [{ name: "👍👍👍👍👍", flag: true }, "name must be at most 4 characters"],
    ...["a\0", "a\nb", "a\u202eb", "\u2066a", "a\u0085b", "a\u2028b"].map(
      (name) =>
        [{ name, flag: true }, "name must not contain control characters or overrides of text direction"] as const,
    ),
    [{ ...valid, note: "a\u202e" }, "note must not contain control characters or overrides of text direction"],
    [{ ...valid, note: "a\0b" }, "note must not contain control characters or overrides of text direction"],
    [{ name: "a" }, "flag must be a boolean"],
    [{ ...valid, note: 7 }, "note must be a string"],
    [{ ...valid, note: "12345" }, "note must be at most 4 characters"],
    [{ ...valid, even: 3 }, "even must be even"],
    [{ ...valid, list: [{ size: 1 }, { size: -1 }] }, "list.1.size is invalid"],
    [{ ...valid, list: [{}] }, "list.0.size is invalid"],
  ])("refuses %j with its sentence", (body, sentence) => {
    expect(() => parse(body)).toThrow(new ApiError(400, sentence));
  });

  test("reports the first field of the schema, also where a later one is missing", () => {
    expect(() => parse({ name: 7 })).toThrow("name must be a string");
  });

  test.each<JsonObject>([
    valid,
    { name: "  👍👍👍👍  ", flag: false },
    { ...valid, note: "", even: null },
    // A family is four people and three joiners.
    { ...valid, name: "👩\u200d👧" },
    { ...valid, name: "ش\u200c", note: "a\n\tb" },
    { ...valid, name: "\u3000a\n" },
    { ...valid, note: null, even: 2 },
    { ...valid, _csrf: 7, unknown: {} },
  ])("accepts %j as it is", (body) => {
    expect(Object.is(parse(body), body)).toBe(true);
  });

  test("lets the failure to read a body pass", () => {
    const failure = new ApiError(415, "Content-Type must be application/json");
    expect(() => parse(failure)).toThrow(failure);
  });

  test("is shown in the document without its sentences", () => {
    expect(JSON.stringify(schema)).not.toContain("must");
    expect(JSON.parse(JSON.stringify(schema.properties.note))).toEqual({
      anyOf: [{ type: "string", maxLength: 4, pattern: expect.stringContaining("\\u202a-\\u202e") }, { type: "null" }],
    });
  });
});

test("a text loses the white space around it, and halves of characters", () => {
  expect(cleanText(" a\ud800 ")).toBe("a\ufffd");
});
