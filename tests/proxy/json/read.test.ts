import * as fc from "fast-check";
import { describe, expect, test } from "bun:test";
import {
  createPortions,
  maxBlockBytes,
  maxBytesAtOnce,
  readJson,
  readJsonInSteps,
  runByLength,
  runInPortions,
  type Steps,
} from "../../../src/proxy/json/read.ts";
import { createSlot } from "../../../src/proxy/json/slots.ts";
import { runAtOnce } from "../../support/run-at-once.ts";

const isValid = (bytes: Uint8Array): boolean => runAtOnce(readJsonInSteps(bytes, createSlot()));

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

describe("a long text is accepted if it is valid UTF-8,", () => {
  test.each(["a", "é", "漢", "😀", "a😀é漢"])("of %s, wherever its steps end", (unit) => {
    for (let shift = 0; shift < 8; shift += 1) {
      const text = Buffer.from(`["${"x".repeat(shift)}${unit.repeat(100_000)}"]`);
      expect(isValid(text)).toBe(true);
      expect(isValid(text.subarray(0, -2))).toBe(false);
    }
  });

  test("as a decoder says, with any bytes around the end of a step", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 6 }),
      fc.array(fc.constantFrom(0x80, 0xbf, 0xc2, 0xe0, 0xa0, 0xed, 0xf0, 0x90, 0xf4, 0x61), { maxLength: 8 }),
    );
    const property = fc.property(bytes, fc.nat(9), (around, shift) => {
      const content = Buffer.from(Uint8Array.from(around).filter((byte) => byte >= 0x23 && byte !== 0x5c));
      const text = Buffer.concat([Buffer.from(`"${"x".repeat(8192 - shift)}`), content, Buffer.from('yyyyyyy"')]);
      expect(isValid(text)).toBe(isUtf8(text));
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

describe("blanks of any kind may stand around a text,", () => {
  const kinds = [
    "\uFEFF",
    "\uFEFF\uFEFF",
    "\f",
    "\v",
    "\u001C",
    "\u0085",
    "\u00A0",
    "\u1680",
    "\u2003",
    "\u2028",
    "\u205F",
    "\u3000",
  ];

  test.each(kinds.map((kind) => [JSON.stringify(kind), kind]))("such as %s", (_, kind) => {
    for (const count of [1, 20_000]) {
      const blank = kind.repeat(count);
      const a = createSlot();
      const bytes = Buffer.from(`${blank}{"a":1}${blank}`);
      expect(runAtOnce(readJsonInSteps(bytes, createSlot({ members: { a } })))).toBe(true);
      expect([a.kind, bytes.toString("utf8", a.start, a.end)]).toEqual(["number", "1"]);
    }
    for (const text of [
      `{${kind}"a":1}`,
      `{"a":${kind}1}`,
      `[1${kind},2]`,
      kind,
      `{}${kind}{}`,
      `{}${kind}x`,
      `x${kind}{}`,
    ]) {
      expect([text, isValid(Buffer.from(text))]).toEqual([text, false]);
    }
  });

  test.each([
    ["NUL", "\u0000"],
    ["a letter", "\u00e9"],
    ["a zero-width space", "\u200b"],
  ])("but not %s", (_, other) => {
    for (const text of [`${other}{}`, `{}${other}`]) expect(isValid(Buffer.from(text))).toBe(false);
  });

  test("nor a part of one", () => {
    for (const byte of [0x85, 0xa0, 0xe3]) {
      expect(isValid(Buffer.from([byte, 0x7b, 0x7d]))).toBe(false);
      expect(isValid(Buffer.from([0x7b, 0x7d, byte]))).toBe(false);
    }
  });
});

test("a text of invalid UTF-8 is read at once all the same", () => {
  const slot = createSlot();
  expect(readJson(Buffer.from('{"a":"\xff"}', "latin1"), createSlot({ members: { a: slot } }))).toBe(true);
  expect([slot.kind, slot.start, slot.end]).toEqual(["string", 5, 8]);
});

test("a text takes one step for each 8 KiB, and none after it turned out not to be JSON", () => {
  const countSteps = (text: Buffer) => Array.from(readJsonInSteps(text, createSlot())).length;
  expect(countSteps(Buffer.from("{}"))).toBe(1);
  expect(countSteps(Buffer.alloc(1_000_000, "["))).toBe(123);
  expect(countSteps(Buffer.alloc(1_000_000, "]"))).toBe(0);
  expect(isValid(Buffer.alloc(0))).toBe(false);
});

/** Each step takes a millisecond of the test's clock. */
function createSteps(count: number, clock: { ms: number }): Steps<string> {
  return (function* steps() {
    for (let step = 0; step < count; step += 1) {
      clock.ms += 1;
      yield;
    }
    return "result";
  })();
}

test("steps run at once give their result", () => {
  expect(runAtOnce(createSteps(5, { ms: 0 }))).toBe("result");
});

test("steps run in portions wait whenever a portion is over", async () => {
  const clock = { ms: 0 };
  const turns: number[] = [];
  const waitForTurn = () => Promise.resolve(void turns.push(clock.ms));
  expect(await runInPortions(createSteps(10, clock), { portionMs: 3, now: () => clock.ms, waitForTurn })).toBe(
    "result",
  );
  expect(turns).toEqual([0, 3, 6, 9]);
});

describe("what is done with a text", () => {
  const run = (stepCount: number, bytes: number) => {
    const clock = { ms: 0 };
    const turns: number[] = [];
    const waitForTurn = () => Promise.resolve(void turns.push(clock.ms));
    const result = runByLength(createSteps(stepCount, clock), bytes, undefined, {
      portionMs: 3,
      now: () => clock.ms,
      waitForTurn,
    });
    return { result, turns };
  };

  test("is done at once if it is short", () => {
    expect(run(2, maxBytesAtOnce)).toEqual({ result: "result", turns: [] });
    // A block: to ask for the time would cost more than to read most of them.
    expect(run(9, maxBlockBytes)).toEqual({ result: "result", turns: [] });
  });

  test("is done in portions if it is long", async () => {
    const { result, turns } = run(3, maxBytesAtOnce + 1);
    expect(await result).toBe("result");
    expect(turns).toEqual([0, 3]);
  });

  test("goes on in portions if it is short and takes long", async () => {
    const { result, turns } = run(9, maxBytesAtOnce);
    expect(await result).toBe("result");
    expect(turns).toEqual([6, 9]);
  });
});

test("an error in a step rejects", async () => {
  const steps = (function* fail(): Steps<void> {
    yield;
    throw new Error("broken");
  })();
  const running = runInPortions(steps, { portionMs: 1, now: () => 0, waitForTurn: () => Promise.resolve() });
  await expect(running).rejects.toThrow("broken");
});

describe("computations that share portions", () => {
  test("take turns", async () => {
    const { waitForTurn } = createPortions(0);
    const order: string[] = [];
    const run = async (name: string): Promise<void> => {
      for (let turn = 0; turn < 3; turn += 1) {
        await waitForTurn();
        order.push(`${name}${turn}`);
      }
    };
    await Promise.all(["a", "b", "c"].map(run));
    expect(order).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]);
  });

  test("take turns by party, however many one has", async () => {
    const { waitForTurn } = createPortions(0);
    const order: string[] = [];
    const run = async (name: string, party: number): Promise<void> => {
      for (let turn = 0; turn < 2; turn += 1) {
        await waitForTurn(party);
        order.push(`${name}${turn}`);
      }
    };
    await Promise.all([...["a", "b", "c"].map((name) => run(name, 1)), run("x", 2)]);
    expect(order).toEqual(["a0", "x0", "b0", "x1", "c0", "a1", "b1", "c1"]);
  });

  test("run one at a time, with a gap after each portion", async () => {
    const portions = createPortions(5);
    const startedAt: number[] = [];
    const run = async (): Promise<void> => {
      for (let turn = 0; turn < 3; turn += 1) {
        await portions.waitForTurn();
        startedAt.push(performance.now());
      }
    };
    await Promise.all([run(), run()]);
    const gaps = startedAt.slice(1).map((ms, index) => ms - (startedAt[index] ?? 0));
    // A timer may be early by less than a millisecond.
    expect(Math.min(...gaps)).toBeGreaterThan(5);
  });

  test("start in the same tick if no other ran just before", async () => {
    const { waitForTurn } = createPortions(1000);
    const started = waitForTurn();
    await new Promise((resolve) => setImmediate(resolve));
    expect(Bun.peek.status(started)).toBe("fulfilled");
  });
});
