import { describe, expect, test } from "bun:test";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import { createRandom, cutAtEveryByte, cutAtRandom } from "../../support/random.ts";
import { passEvents } from "./start-meter.ts";

const utf8 = new TextEncoder();
const text = new TextDecoder("utf-8", { ignoreBOM: true });

interface Passed {
  sent: string;
  terminal: string | undefined;
  after: string;
  rest: string;
}

/** What comes out: before the terminal event, with it, after it, and at the end. */
function pass(pieces: Iterable<Uint8Array>, hold: Passage = passEvents()): Passed {
  const passed: Passed = { sent: "", terminal: undefined, after: "", rest: "" };
  for (const piece of pieces) {
    const bytes = text.decode(hold.push(piece));
    if (passed.terminal === undefined) passed.sent += bytes;
    else passed.after += bytes;
    const terminal = hold.held.take();
    if (terminal !== undefined) passed.terminal = text.decode(terminal);
  }
  passed.rest = restOf(hold);
  return passed;
}

function restOf(hold: Passage): string {
  void hold.end();
  return text.decode(hold.rest());
}

/** What a body passes through whose type does not say what it is. */
const passUnknown = (): Passage => new Passage(kindOf("text/plain", null), { listener: {} });

const whole = ({ sent, terminal = "", after, rest }: Passed): string => sent + terminal + after + rest;
const one = (stream: string): Uint8Array[] => [utf8.encode(stream)];

describe("whole events", () => {
  test.each([
    ["LF", "data: a\n\ndata: b\n\n"],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["CR", "data: a\r\rdata: b\r\r"],
    ["comments", ": hi\n\n\n\nevent: x\ndata: b\n\n"],
  ])("pass at once with lines that end in %s", (_, stream) => {
    expect(pass(one(stream))).toEqual({ sent: stream, terminal: undefined, after: "", rest: "" });
  });

  test("pass while an unfinished one waits for its end, wherever the stream is cut", () => {
    const hold = passEvents();
    const sent = ["data: a\n", "\ndata: {", "}\n", "\n", "data: c\n\nda"].map((piece) =>
      text.decode(hold.push(utf8.encode(piece))),
    );
    expect(sent).toEqual(["", "data: a\n\n", "", "data: {}\n\n", "data: c\n\n"]);
    expect(restOf(hold)).toBe("da");
  });

  test("wait no longer than 64 KiB", () => {
    const hold = passEvents();
    expect(hold.push(utf8.encode(`data: ${"x".repeat(60_000)}`))).toHaveLength(0);
    expect(hold.push(utf8.encode("y".repeat(10_000)))).toHaveLength(70_006);
    expect(text.decode(hold.push(utf8.encode("z\n\ndata: b")))).toBe("z\n\n");
    expect(text.decode(hold.push(utf8.encode("\n\n")))).toBe("data: b\n\n");
  });
});

describe("a comment line", () => {
  test("between events passes at its end, wherever it is cut", () => {
    const hold = passEvents();
    const sent = [":\n", ": a", "b\n", ":\r\n", "\n", ": c\n: d", "\ndata: e\n", ":\n", "\n", ":\r", "data: f"].map(
      (piece) => text.decode(hold.push(utf8.encode(piece))),
    );
    expect(sent).toEqual([":\n", "", ": ab\n", ":\r\n", "\n", ": c\n", ": d\n", "", "data: e\n:\n\n", "", ":\r"]);
    expect(restOf(hold)).toBe("data: f");
  });
});

describe("the terminal event", () => {
  const before = 'data: {"text":"say [DONE], message_stop or response.completed"}\n\n';
  const chat = 'data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\n';
  const created = 'event: response.created\ndata: {"type":"response.created"}\n\n';
  const started = 'event: message_start\ndata: {"type":"message_start"}\n\n';
  test.each([
    [chat, "data: [DONE]\n\n"],
    [chat, "data:[DONE]\r\n\r\n"],
    [chat, "data: [DONE] \n\n"],
    ["", "\uFEFFdata: [DONE]\n\n"],
    ["data: a\r\rdata: b\r\r", "data: [DONE]\r\r"],
    [before, "id: 7\ndata: \t[DONE]\n\n"],
    [started, 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    [started, 'data: {"type": "message_stop"}\n\n'],
    [before, 'event: message_stop\rdata: {"type":"message_stop"}\r\r'],
    [created, 'event: response.completed\ndata: {"type":"response.completed"}\n\n'],
    [before, 'event: response.incomplete\ndata: {"response":{}}\n\n'],
    [created, "event: response.failed\ndata: {}\n\n"],
    [created, 'data: {"response":{"id":"r"},"type":"response.completed"}\n\n'],
    [created, 'data: {"response":{"type":"r"},\ndata: "type":\ndata: "response.completed"}\n\n'],
    [created, 'event: x\ndata: {"response":{},"type":"response.completed"}\n\n'],
  ])("after %j is %j, with the events that follow in its chunk", (sent, terminal) => {
    const stream = `${sent}${terminal}: bye\n\nhalf`;
    expect(pass(one(stream))).toEqual({ sent, terminal: `${terminal}: bye\n\n`, after: "", rest: "half" });
    const bytes = utf8.encode(stream);
    const atRandom = Array.from({ length: 50 }, (_, seed) => cutAtRandom(bytes, createRandom(seed)));
    for (const pieces of [...cutAtEveryByte(bytes), ...atRandom]) {
      const passed = pass(pieces);
      expect(passed.sent).toBe(sent);
      expect(passed.terminal).toStartWith(terminal.trimEnd());
      expect(whole(passed)).toBe(stream);
    }
  });

  test.each([chat, started, created])("of another dialect than %j, in a write of its own", (first) => {
    for (const terminal of ['data: {"type":"response.completed"}\n\n', "event: message_stop\n\n", "data: [DONE]\n\n"]) {
      expect(pass([utf8.encode(first), utf8.encode(terminal)])).toMatchObject({ sent: first, terminal });
    }
  });

  test.each([
    before,
    chat,
    'event: content_block_delta\ndata: {"delta":{"text":"message_stop"}}\n\n',
    'event: response.output_text.delta\ndata: {"delta":"response.completed"}\n\n',
    'data: {"type":"response.output_text.delta","delta":"response.completed"}\n\n',
    'data: {"delta":"response.completed","response":{"type":"response.completed"}}\n\n',
  ])("is not %j", (stream) => {
    expect(pass(one(stream))).toEqual({ sent: stream, terminal: undefined, after: "", rest: "" });
  });

  test.each([
    ["its type comes last", (x: string) => `data: {"response":{"output":"${x}"},"type":"response.completed"}`],
    ["its data has several lines", (x: string) => `data: {"x":"${x}",\r\ndata: "type":\r\ndata: "response.failed"}`],
  ])("that is too long to hold keeps back the lines that end it, also if %s", (_, eventOf) => {
    const event = eventOf("x".repeat(70_000));
    for (let seed = 0; seed < 5; seed++) {
      const passed = pass(cutAtRandom(utf8.encode(`${created}${event}\n\nlate`), createRandom(seed)));
      expect(passed.sent.trimEnd()).toBe(created + event);
      expect(passed.terminal).toStartWith("\n");
      expect(whole(passed)).toBe(`${created}${event}\n\nlate`);
    }
    const other = event.replace(/response\.(?:completed|failed)/, "response.output_item.done");
    expect(pass(cutAtRandom(utf8.encode(`${created}${other}\n\n`), createRandom(1))).terminal).toBeUndefined();
  });

  test("that is too long to hold keeps back the lines that end it", () => {
    const event = `event: response.completed\ndata: {"type":"response.completed","x":"${"x".repeat(200_000)}"}`;
    const pieces = [...one(before + event.slice(0, 100_000)), ...one(`${event.slice(100_000)}\n\n`), ...one("late")];
    const passed = pass(pieces);
    expect(passed.sent).toBe(before + event);
    expect([passed.terminal, passed.after, passed.rest]).toEqual(["\n\n", "", "late"]);
    const atOnce = pass(one(`${before}${event}\n\n: bye\n\n`));
    expect([atOnce.sent, atOnce.terminal]).toEqual([before + event, "\n\n: bye\n\n"]);
  });

  test("that is too long to hold leaves no room for anything else, while its last lines wait", () => {
    const hold = passEvents();
    hold.push(utf8.encode(`event: response.completed\ndata: {"x":"${"x".repeat(70_000)}"}`));
    hold.push(utf8.encode("\n\n"));
    expect([text.decode(hold.held.take()), hold.position()]).toEqual(["\n\n", "inside a line"]);
  });

  test("may follow a long event in one chunk", () => {
    const long = `data: ${"x".repeat(70_000)}`;
    const passed = pass([...one(long), ...one("x\n\ndata: b\n\ndata: [DONE]\n\n")]);
    expect([passed.sent, passed.terminal]).toEqual([`${long}x\n\ndata: b\n\n`, "data: [DONE]\n\n"]);
  });
});

describe("a body whose type does not say what it is", () => {
  test.each(["\uFEFFdata: a\n\n", "\n\n: a\n\n", "event: a\ndata: b\r\n\r\n", "id:1\n\n", "retry: 5\r\r"])(
    "is held as an event stream if it begins with %j",
    (begin) => {
      const bytes = utf8.encode(`${begin}data: [DONE]\n\nx`);
      for (const pieces of cutAtEveryByte(bytes)) {
        const passed = pass(pieces, passUnknown());
        expect([passed.sent.trimEnd(), whole(passed)]).toEqual([begin.trimEnd(), text.decode(bytes)]);
        expect(passed.terminal?.trimStart()).toStartWith("data: [DONE]\n\n");
      }
    },
  );

  test.each(['{"a":1}', "[1]", "plain text", "database: x", "\uFEFFx", " data: x", "dat"])(
    "passes at once if it begins with %j",
    (body) => {
      for (const pieces of cutAtEveryByte(utf8.encode(`${body}\n\n${"x".repeat(20)}`))) {
        const all = pass(pieces, passUnknown());
        expect([all.sent, all.terminal, all.rest]).toEqual([`${body}\n\n${"x".repeat(20)}`, undefined, ""]);
      }
    },
  );
});

test("no byte is lost, added or moved, wherever a stream is cut", () => {
  const stream = `\uFEFF: a\r\ndata: b\r\n\r\ndata: ${"c".repeat(300)}\n\n\rdata: d\r\r\n\ndata: [DONE]\n\n\nrest`;
  for (let seed = 0; seed < 300; seed++) {
    expect(whole(pass(cutAtRandom(utf8.encode(stream), createRandom(seed))))).toBe(stream);
  }
});
