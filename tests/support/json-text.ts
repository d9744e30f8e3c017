import * as fc from "fast-check";

/** White space between tokens. */
export const space = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n  ");

/** Numbers that parsing and serializing would change. */
const numberText = fc.oneof(
  fc.constantFrom("12345678901234567890", "1.0", "-0", "1e400", "-1E+2", "0.1e-7", "3.141592653589793238462643383279"),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
);

/** The string as JSON, sometimes with escapes that are not needed. */
export const stringText = (content: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(content, fc.nat(3)).map(([text, escaped]) => {
    if (escaped > 0) return JSON.stringify(text);
    const units = Array.from({ length: text.length }, (_, index) => text.charCodeAt(index));
    return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("")}"`;
  });

const anyString = stringText(fc.string({ unit: "binary", maxLength: 40 }));

export const { value: jsonText } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom("true", "false", "null"),
    numberText,
    anyString,
    tie("array"),
    tie("object"),
  ),
  array: fc
    .tuple(space, fc.array(fc.tuple(space, tie("value"), space), { maxLength: 4 }))
    .map(
      ([inside, elements]) => `[${elements.length === 0 ? inside : elements.map((parts) => parts.join("")).join(",")}]`,
    ),
  object: fc.array(fc.tuple(anyString, tie("value")), { maxLength: 4 }).chain((members) => objectText(members)),
}));

type Members = readonly (readonly [name: string, value: string])[];

/** An object with these members in this order, including duplicates, with white space between the tokens. */
export function objectText(members: Members): fc.Arbitrary<string> {
  if (members.length === 0) return space.map((inside) => `{${inside}}`);
  return memberTexts(members).map((texts) => `{${texts.join(",")}}`);
}

/** The text of each member, with white space on both sides. */
export function memberTexts(members: Members): fc.Arbitrary<string[]> {
  const { length } = members;
  const spaces = fc.array(fc.tuple(space, space, space, space), { minLength: length, maxLength: length });
  return spaces.map((spacesOf) =>
    members.map(([name, value], index) => {
      const [a, b, c, d] = spacesOf[index] ?? ["", "", "", ""];
      return `${a}${name}${b}:${c}${value}${d}`;
    }),
  );
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON, and texts that some reader wrongly accepts. */
export const nearlyJson: readonly string[] = [
  ["{}", "[]", " { } ", "[ ]", '""', "0", "-0", "-1.5e+10", "1E5", "true", "false", "null", "\t\r\n 1 \t\r\n"],
  ['{"a":1,"a":2}', '[[],{},[{}],""]', '"\\u00e9\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\ud800"', '"\u2028\u007f"'],
  ["", " ", "{", "}", "[", "]", "{]", "[}", '{"a"}', '{"a":}', '{"a":1,}', "{,}", "[,]", "[1,]", "[1 2]", "[1,,2]"],
  ["01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "1_000", "tru", "truex", "nul", "True", "None", "undefined"],
  ['"', '"\\"', '"\\', '"\\x"', '"\\u12"', '"\\u12g4"', '"a\nb"', '"a\u0000b"', "'a'", "{a:1}", "{1:1}", '"a""b"'],
  [
    "{} {}",
    "[1]]",
    "{}}",
    '{"a":1]',
    "[1}",
    '{"a":[1,{"b":2]}',
    "// x\n1",
    "1//",
    "\u00a01",
    "\ufeff\ufeff1",
    "1\ufeff",
  ],
  [
    `"${"x".repeat(100)}"`,
    `"${"x".repeat(100)}`,
    `"${"x".repeat(100)}\t"`,
    `"${"x".repeat(100)}\\n"`,
    `"${"x".repeat(100)}\\q"`,
  ],
].flat();

/** A JSON text with one character inserted, removed or replaced. */
export const brokenText: fc.Arbitrary<string> = fc
  .tuple(
    jsonText,
    fc.nat(),
    fc.nat(1),
    fc.constantFrom("", "{", "}", "[", "]", '"', ",", ":", "\\", "0", "e", "\n", "\u0001"),
  )
  .map(([text, place, removed, inserted]) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + inserted + text.slice(at + removed);
  });
