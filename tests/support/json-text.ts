import * as fc from "fast-check";

/** White space as people and serialisers leave it between tokens. */
export const space = fc.constantFrom("", "", "", " ", "\n", "\t", "\r\n  ");

/** Spellings that a parser and a serialiser would not bring back. */
const numberText = fc.oneof(
  fc.constantFrom("12345678901234567890", "1.0", "-0", "1e400", "-1E+2", "0.1e-7", "3.141592653589793238462643383279"),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
);

/** The string as JSON, some of its characters escaped that need not be. */
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

/** An object of these members in this order, duplicates included, with white space between the tokens. */
export function objectText(members: Members): fc.Arbitrary<string> {
  if (members.length === 0) return space.map((inside) => `{${inside}}`);
  return memberTexts(members).map((texts) => `{${texts.join(",")}}`);
}

/** Each member's own text, white space on both sides. */
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
