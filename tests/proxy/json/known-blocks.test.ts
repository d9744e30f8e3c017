import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createKnownBlocks, type Hash, type KnownBlocks } from "../../../src/proxy/json/known-blocks.ts";
import { maxBlockBytes, readJsonInSteps } from "../../../src/proxy/json/read.ts";
import { createSlot, type JsonSlot, type SlotOptions } from "../../../src/proxy/json/slots.ts";
import { hash } from "../../../src/proxy/request/conversation.ts";
import { jsonText } from "../../support/json-text.ts";
import { runAtOnce } from "../../support/run-at-once.ts";

const seams = ['"system":', '"tools":'];

interface Watched {
  root: JsonSlot;
  /** All that a slot was told, and what it held then. */
  calls: unknown[];
}

/** Lists, objects and names at several levels, and a member whose value is watched as a whole. */
function createWatched(): Watched {
  const calls: unknown[] = [];
  const watch = (name: string, options: SlotOptions = {}): JsonSlot => {
    const slot = createSlot({
      ...options,
      onStart: () => calls.push([name, "starts"]),
      onValue: () => {
        const members = slot.members.map((member) => [member.name, member.slot.kind, member.slot.start]);
        calls.push([name, slot.kind, slot.start, slot.end, slot.tail, slot.count, members]);
      },
    });
    return slot;
  };
  const part = watch("part", { members: { type: watch("type"), text: watch("text") } });
  const content = watch("content", { element: part });
  const message = watch("message", { members: { role: watch("role"), content } });
  const other = watch("other");
  const root = watch("root", {
    members: { model: watch("model"), messages: watch("messages", { element: message }), tools: watch("tools") },
    onOtherMember(bytes: Uint8Array, start: number, end: number) {
      calls.push(["other member", Buffer.from(bytes).toString("latin1", start, end)]);
      return bytes[start] === 0x6d ? other : undefined;
    },
  });
  return { root, calls };
}

function read(text: string | Buffer, known?: KnownBlocks): unknown[] {
  const { root, calls } = createWatched();
  const isValid = runAtOnce(readJsonInSteps(new Uint8Array(Buffer.from(text)), root, known?.("shape")));
  // What slots hold after a text that is not JSON is meaningless.
  return isValid ? calls : ["not JSON"];
}

/** Stands in a text for what is no JSON. */
const mark = "<";
const notAllowed = "\u0001";

/** Both stand for the same, so that a test sees which blocks are read again. */
const withoutMarks = (text: string | Uint8Array): string =>
  Buffer.from(text).toString("latin1").replaceAll(notAllowed, mark);
const takingThemForTheSame = {
  hash: (text: string | Uint8Array, seed: number): number => hash(withoutMarks(text), seed),
  areSame: (a: Uint8Array, b: Uint8Array): boolean => withoutMarks(a) === withoutMarks(b),
};

const padding = (length: number): string => "some words ".repeat(length).slice(0, length);
const message = (content: string): string => `{"role":"user","content":"${content}"}`;
const conversation = (contents: readonly string[], tools = `[{"name":"${padding(20_000)}"}]`): string =>
  `{"model":"m","messages":[${contents.map(message).join()}],"tools":${tools},"max_tokens":1}`;

describe("what is read with blocks that are known is the same,", () => {
  const filler = fc
    .tuple(fc.constantFrom("words ", "\\n", '\\"', "\\u00e9", "é漢 ", "x", "\\\\"), fc.integer({ min: 1, max: 2000 }))
    .map(([unit, count]) => unit.repeat(count));
  const element = fc.oneof(
    jsonText,
    filler.map(message),
    filler.map((text) => `[{"a":"${text}"},-1.5e3,null]`),
  );
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    removed: fc.nat(40),
    added: fc.constantFrom("", ",", '"', "\\", "]", "}", '{"a":1},', "-Infinity", "é", "\u0000", '"tools":'),
  });

  const ofFour: Hash = (text, seed) => hash(text, seed) % 4;
  test.each([
    ["few have the same hash", hash],
    ["very many have the same hash", ofFour],
  ] as const)("however texts go on from those before them, and %s", (_name, used) => {
    const texts = fc.tuple(
      fc.array(element, { minLength: 3, maxLength: 12 }),
      element,
      fc.array(change, { maxLength: 4 }),
    );
    const property = fc.property(texts, ([elements, tools, changes]) => {
      const known = createKnownBlocks({ hash: used, seams });
      const write = (count: number): string =>
        `{"model":"m","messages":[${elements.slice(0, count).join()}],"system":[${tools}],"tools":[${tools}],"m":1}`;
      const grown = elements.map((_, count) => write(count + 1));
      const last = grown.at(-1) ?? "";
      const changed = changes.map(({ at, removed, added }) => {
        const from = Math.floor(at * last.length);
        return last.slice(0, from) + added + last.slice(from + removed);
      });
      for (const text of [...grown, ...changed, last]) expect(read(text, known)).toEqual(read(text));
    });
    fc.assert(property, { numRuns: 200 });
  });

  const cut: [string, string[]][] = [
    ["a number", ["-1.5e+10", "-1.5e+10,7", "-1.5", "-1.5ee", "-1.5e+"]],
    ["a negative number or literal", ["-5", "-Infinity", "-Inf", "-"]],
    ["a literal", ["true", "tru", "trxe", "nul", "null", "NaN"]],
    ["an escape", ['"a\\u00e9b"', '"a\\u00exb"', '"a\\nb"', '"a\\xb"', '"a\\\\"', '"a\\"b"']],
    ["a character", ['"é漢😀"', '"é漢😁"']],
    ["a name", ['1,"model":2', '1,"mod":2', '1,"model', '1,"mo\\u0064el":3', '1,"other":[{}]']],
    ["a bracket", ["[[],{}]", "[[],{}}", "{}", "[]", "[{]"]],
    ["white space", ["  1 ", " \t\n1", "   "]],
  ];
  test.each(cut)("where %s lies over the end of a block", (_, values) => {
    const length = Math.max(...values.map((value) => value.length)) + 12;
    for (let shift = 0; shift < length; shift += 1) {
      for (const unit of ["x", "é", "x "]) {
        const known = createKnownBlocks({ hash, seams });
        const head = `{"m":"${unit.repeat(maxBlockBytes).slice(0, maxBlockBytes)}`;
        const start = Buffer.from(head)
          .subarray(0, maxBlockBytes - shift)
          .toString()
          .replace(/\ufffd*$/, "");
        for (const value of [...values, ...values]) {
          const text = `${start}","a":${value},"b":"${padding(maxBlockBytes)}"}`;
          expect(read(text, known)).toEqual(read(text));
        }
      }
    }
  });

  test("where bytes that are no UTF-8 follow", () => {
    const known = createKnownBlocks({ hash, seams });
    const whole = Buffer.from(conversation([padding(9000), `${padding(9000)}é`]));
    expect(read(whole, known)).toEqual(read(whole));
    for (let at = 8000; at < 8400; at += 1) {
      const broken = Buffer.from(whole);
      broken[at] = 0xc3;
      expect([at, read(broken, known)]).toEqual([at, ["not JSON"]]);
    }
    expect(read(whole, known)).toEqual(read(whole));
  });

  test.each([
    ["deep", `${'{"a":['.repeat(40)}"${padding(9000)}"${"]}".repeat(40)}`],
    ["many", `[${"{},".repeat(9000)}{}]`],
    ["long names", `{"${padding(30_000)}":1,"model":"${padding(9000)}"}`],
  ])("where they are %s", (_, tools) => {
    const known = createKnownBlocks({ hash, seams });
    for (const contents of [[tools], [tools, tools], [tools, "x"]]) {
      const text = `{"messages":[${contents.join()}],"tools":${tools}}`;
      for (let time = 0; time < 2; time += 1) expect(read(text, known)).toEqual(read(text));
    }
  });

  test("where what follows a member of the document follows the same name elsewhere", () => {
    const known = createKnownBlocks({ hash, seams });
    const tools = `"tools":[{"name":"${padding(9000)}"}],"m":1}`;
    const heads = ['{"a":1,', '{"x":{"a":1,', '{"messages":[{"a":1,', '[{"a":1,', '{"a":', '{"a":1 ', "[1,", "{", ""];
    for (const head of [...heads, ...heads]) {
      for (const end of ["", "}", "]}", "]"]) {
        const text = head + tools + end;
        expect([head, end, read(text, known)]).toEqual([head, end, read(text)]);
      }
    }
  });

  test("where a text was read up to a name, and another goes on behind the block that has it", () => {
    const known = createKnownBlocks({ hash, seams });
    const [nested, next] = ['"tools":[],"p":"', '","messages":[{"y":1,'];
    const turn = '"tools":1}],"x":[{';
    const filled = "p".repeat(maxBlockBytes - nested.length - next.length - turn.length);
    const block = `${nested}${filled}${next}${turn}`;
    const rest = `"z":1}],"model":"other","q":"${"q".repeat(maxBlockBytes)}"}`;
    // Behind the eighth, no name is looked for.
    const names = `"w":{${'"tools":1,'.repeat(7)}"u":1},`;
    for (const text of [`{"a":1,${block}${rest}`, `{"model":"m",${names}${block}${turn}${rest}`]) {
      expect(read(text)).not.toEqual(["not JSON"]);
      expect(read(text, known)).toEqual(read(text));
    }
  });

  test("where the hash of two texts is the same", () => {
    const known = createKnownBlocks({ hash: () => 0, seams });
    const first = conversation([`${padding(9000)}","a":1,"b":"${padding(9000)}`, padding(20_000)]);
    const second = first.replace('"a":1', '"role":1');
    for (const text of [first, first, second, second, first]) expect(read(text, known)).toEqual(read(text));
  });

  test("where the same text follows another", () => {
    const known = createKnownBlocks({ hash: (text) => hash(text, 0), seams });
    const heads = [
      '{"messages":[{"content":"',
      `{"x":[[[{"y":[[{"model":"`,
      `{"model":"${padding(15)}`,
      `["${padding(23)}`,
    ];
    for (const head of [...heads, ...heads]) {
      for (const end of ['"}', '"}]}', '"]', '"}]]}]]]}']) {
        const text = `${head}${padding(30_000)}${end}`;
        expect([head, end, read(text, known)]).toEqual([head, end, read(text)]);
      }
    }
  });

  test("whatever becomes of the memory of a text that was read", () => {
    // Goes by what is before a block alone.
    const byPlace: Hash = (text, seed) => (typeof text === "string" ? -text.length : seed);
    const known = createKnownBlocks({ hash: byPlace, seams });
    const [first, second] = ['"role":1,"role":2', '"role":"1,role:2"'].map((member) =>
      Buffer.from(conversation([`${padding(9000)}",${member},"z":"${padding(9000)}`, padding(20_000)])),
    ) as [Buffer, Buffer];
    const memory = Buffer.from(first);
    const { root } = createWatched();
    runAtOnce(readJsonInSteps(memory, root, known("shape")));
    second.copy(memory);
    expect(read(second, known)).toEqual(read(second));
    expect(read(first, known)).toEqual(read(first));
  });

  test("however often a text has one of the members", () => {
    const known = createKnownBlocks({ hash, seams });
    const nested = `${'{"tools":'.repeat(5000)}1${"}".repeat(5000)}`;
    const flat = `{${'"tools":[1],'.repeat(5000)}"m":${nested}}`;
    for (const text of [nested, flat, flat, nested]) expect(read(text, known)).toEqual(read(text));
  });
});

describe("blocks are not read again", () => {
  const broken = (text: string): string => text.replaceAll(mark, notAllowed);
  const isPassedOver = (text: string, known: KnownBlocks): boolean => read(broken(text), known)[0] !== "not JSON";
  const create = (maxKeptBytes = 1_000_000): KnownBlocks =>
    createKnownBlocks({ ...takingThemForTheSame, seams, maxKeptBytes });

  test("of a text that goes on from one that came before", () => {
    const known = create();
    const turns = [`${padding(10_000)}<`, padding(30_000)];
    expect(isPassedOver(conversation(turns), known)).toBe(false);
    read(conversation(turns), known);
    expect(isPassedOver(conversation([...turns, "next"]), known)).toBe(true);
    expect(isPassedOver(conversation(["other", ...turns]), known)).toBe(false);
    expect(isPassedOver(conversation([...turns, `new <`]), known)).toBe(false);
  });

  test("of tools behind messages that changed, up to the end", () => {
    const known = create();
    const tools = `[{"name":"${padding(9000)}<${padding(20_000)}<"}]`;
    read(conversation(["first"], tools), known);
    for (const contents of [["another"], ["another", padding(140_000)], [padding(8150)], [padding(8192)]]) {
      expect(isPassedOver(conversation(contents, tools), known)).toBe(true);
    }
    expect(isPassedOver(conversation(["first"], `[1,{"name":"${padding(9000)}<"}]`), known)).toBe(false);
  });

  test("of tools wherever a block ends before them", () => {
    const tools = `[{"name":"${padding(9000)}<${padding(20_000)}<"}]`;
    for (let length = 8100; length < 8250; length += 1) {
      const known = create();
      read(conversation(["first"], tools), known);
      expect([length, isPassedOver(conversation(["x".repeat(length)], tools), known)]).toEqual([length, true]);
    }
  });

  test("of tools behind a member of that name in another", () => {
    const known = create();
    const tools = `[{"name":"${padding(9000)}<"}]`;
    const nested = (content: string): string => conversation([content], tools).replace('"m"', '{"tools":[1]}');
    read(nested("first"), known);
    expect(isPassedOver(nested("another"), known)).toBe(true);
  });

  test("of conversations that take turns", () => {
    const known = create();
    const turns = [`${padding(10_000)}<`, padding(30_000)];
    const both = [conversation(["one", ...turns]), conversation(["two", ...turns])];
    for (const text of both) read(text, known);
    for (const text of [...both, ...both]) expect(isPassedOver(text, known)).toBe(true);
  });

  test("of a text full of backslashes", () => {
    const known = create();
    for (let shift = 0; shift < 4; shift += 1) {
      const path = `${"x".repeat(shift)}${`${mark}\\\\`.repeat(9000)}`;
      read(conversation([path, padding(30_000)]), known);
      expect(isPassedOver(conversation([path, padding(30_000)]), known)).toBe(true);
    }
  });

  test("but those where something else is watched", () => {
    const known = create();
    const turns = conversation([`${padding(10_000)}<`, padding(30_000)]);
    const tools = conversation([], `["<${padding(30_000)}"]`);
    const readAs = (shape: string, body: string): boolean =>
      runAtOnce(readJsonInSteps(Buffer.from(body), createWatched().root, known(shape)));
    for (const text of [turns, tools]) {
      const accepted = [readAs("one", text), readAs("one", broken(text)), readAs("two", broken(text))];
      expect(accepted).toEqual([true, true, false]);
    }
  });

  test("but those that have not come for long: only so many are kept", () => {
    const known = create(300_000);
    const turns = [`${padding(10_000)}<`, padding(30_000)];
    read(conversation(turns), known);
    expect(isPassedOver(conversation(turns), known)).toBe(true);
    for (let index = 0; index < 50; index += 1) read(conversation([`${index}${padding(30_000)}`]), known);
    expect(isPassedOver(conversation(turns), known)).toBe(false);
  });
});
