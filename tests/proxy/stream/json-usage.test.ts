import { describe, expect, test } from "bun:test";
import { createUsageParser, mayHoldUsage, mentionsUsage, readUsage } from "../../../src/proxy/stream/usage.ts";
import { createRandom, cutAtEveryByte, cutAtRandom, type Random } from "../../support/random.ts";
import { noUsage, type Usage } from "../../../src/domain/usage.ts";
import { threadMs } from "../../support/processor-time.ts";

const utf8 = new TextEncoder();

function usageOf(pieces: Iterable<Uint8Array>): Usage {
  const parser = createUsageParser();
  for (const piece of pieces) parser.push(piece);
  return readUsage(parser.document(), noUsage);
}

const five = { inputTokens: 5, outputTokens: 2 };
const counts = '{"prompt_tokens":5,"completion_tokens":2}';

/** What the random texts below have not. */
const texts: [name: string, json: string, usage: Usage][] = [
  ["after a byte order mark", `\uFEFF{"usage":${counts}}`, five],
  ["under names of prototypes", `{"__proto__":{"usage":${counts}},"constructor":{"usage":${counts}}}`, noUsage],
  ["in an array", `[{"usage":${counts}}]`, noUsage],
  ["after the document", `{} {"usage":${counts}} "document":{"usage":${counts}}`, noUsage],
];

describe("JSON usage parser", () => {
  test.each(texts)("reads usage %s, cut at every byte", (_, json, usage) => {
    for (const pieces of cutAtEveryByte(utf8.encode(json))) expect(usageOf(pieces)).toEqual(usage);
  });

  test("keeps the complete values of a truncated text, without an unfinished number", () => {
    const text = '{"message":{"usage":{"input_tokens":25,"output_tokens":12';
    expect(usageOf([utf8.encode(text)])).toEqual({ inputTokens: 25, outputTokens: 0 });
    expect(usageOf([utf8.encode(`${text}3`), utf8.encode("4}")])).toEqual({ inputTokens: 25, outputTokens: 1234 });
  });

  test("reads no total of a truncated text, whose counts may be missing", () => {
    const text = '{"usage":{"total_tokens":60';
    expect(usageOf([utf8.encode(`${text},`)])).toEqual(noUsage);
    expect(usageOf([utf8.encode(`${text}}`)])).toEqual({ inputTokens: 60, outputTokens: 0 });
  });

  test("finds no usage in what is not JSON", () => {
    for (const text of [
      "",
      "}",
      "]]]]",
      '{"usage":',
      '{"usage":{"prompt_tokens":}}',
      "{,,,}",
      '{"a" "b":::"c"}',
      "{{{",
      '{"choices":[}',
      '{"choices":[{]',
      '{"choices":[,:"a"',
      '"',
    ]) {
      expect(usageOf([utf8.encode(text), utf8.encode("}]}")])).toEqual(noUsage);
    }
  });

  test("reads usage after a hundred thousand brackets and after a name of 10 MB", () => {
    const deep = utf8.encode(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)},"usage":${counts}}`);
    expect(usageOf([deep])).toEqual(five);
    const named = utf8.encode(`{"${"usage".repeat(2_000_000)}":1,"usage":${counts}}`);
    expect(usageOf([named.subarray(0, 5_000_000), named.subarray(5_000_000)])).toEqual(five);
  });

  test("reads 50 MB of numbers and strings in linear time", () => {
    const numbers = utf8.encode(`[${"0.0123,-4.5e-6,".repeat(65_536)}0],`);
    const quotes = utf8.encode(`"${'\\"\\\\'.repeat(131_072)}",`);
    const parser = createUsageParser();
    const tookMs = threadMs(() => {
      parser.push(utf8.encode('{"data":['));
      for (let round = 0; round < 34; round++) {
        parser.push(numbers);
        parser.push(quotes);
      }
      parser.push(utf8.encode(`0],"usage":${counts}}`));
    });
    expect(tookMs).toBeLessThan(10_000);
    expect(readUsage(parser.document(), noUsage)).toEqual(five);
  });

  test("keeps little of a text that is made to be kept", () => {
    const nested = (depth: number): string =>
      depth === 0
        ? counts
        : `{${["usage", "message", "error", "id"].map((name) => `"${name}":${nested(depth - 1)}`).join()}}`;
    const parser = createUsageParser();
    parser.push(utf8.encode(nested(8)));
    expect(JSON.stringify(parser.document()).length).toBeLessThan(500_000);
  });

  test("agrees with JSON.parse on 30,000 random texts", () => {
    const seed = Number(process.env.FUZZ_SEED ?? 1);
    let withUsage = 0;
    for (let round = 0; round < 30_000; round++) {
      const random = createRandom(seed * 1_000_003 + round);
      const json = randomObject(random, 0);
      const bytes = utf8.encode(json);
      const expected = readUsage(JSON.parse(json), noUsage);
      const actual = usageOf(cutAtRandom(bytes, random));
      const isSeen = Bun.deepEquals(expected, noUsage) || (mayHoldUsage(bytes) && mentionsUsage(bytes));
      if (!Bun.deepEquals(actual, expected) || !isSeen) {
        throw new Error(`seed ${seed}, round ${round}: ${JSON.stringify({ json, expected, actual, isSeen })}`);
      }
      if (expected !== noUsage) withUsage++;
    }
    expect(withUsage).toBeGreaterThan(10_000);
  });
});

const names = [
  "usage",
  "usage",
  "choices",
  "choices",
  "x_groq",
  "0",
  "message",
  "response",
  "a",
  "",
  "usag",
  "usage\\",
  'usage"',
  "소비",
];
const countNames = ["prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens", "usage"];
const numbers = ["0", "-0", "1", "7", "12", "4096", "1.5", "2.0", "3e2", "1E400", "-4", "9007199254740993"];
const strings = ["", "usage", '{"usage":{"prompt_tokens":1}}', "\\", '\\"', "}", "]", "안녕", "\u2028", "\n"];

function randomValue(random: Random, depth: number): string {
  const kind = random.below(depth > 4 ? 4 : 8);
  if (kind === 0) return random.pick(["null", "true", "false"]);
  if (kind === 1) return randomString(random, random.pick(strings));
  if (kind < 4) return random.pick(numbers);
  if (kind === 4) return randomArray(random, depth);
  return randomObject(random, depth);
}

function randomArray(random: Random, depth: number): string {
  const elements = Array.from({ length: random.below(3) }, () => spaced(random, randomValue(random, depth + 1)));
  return `[${elements.join(",")}]`;
}

function randomObject(random: Random, depth: number): string {
  const members = Array.from({ length: random.below(5) }, () => {
    const name = randomString(random, random.pick(random.below(2) === 0 ? names : countNames));
    return `${spaced(random, name)}:${spaced(random, randomValue(random, depth + 1))}`;
  });
  return `{${members.join(",")}}`;
}

/** Sometimes with escapes that are not needed. */
function randomString(random: Random, content: string): string {
  const json = JSON.stringify(content);
  if (random.below(4) > 0) return json;
  return json.replace(/(?<!\\)[a-z_]/g, (letter) =>
    random.below(3) > 0 ? letter : `\\u00${letter.charCodeAt(0).toString(16)}`,
  );
}

function spaced(random: Random, token: string): string {
  return random.below(4) > 0 ? token : `${random.pick(["", " ", "\n"])}${token}${random.pick(["", " ", "\r\n\t"])}`;
}
