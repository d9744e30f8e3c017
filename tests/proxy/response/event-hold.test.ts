import { describe, expect, test } from "bun:test";
import { createEventHold } from "../../../src/proxy/response/event-hold.ts";
import { createRandom, cutAtEveryByte, cutAtRandom } from "../../support/random.ts";

const utf8 = new TextEncoder();
const text = new TextDecoder();

interface Passed {
  sent: string;
  terminal: string | undefined;
  after: string;
  rest: string;
}

/** What comes out: before the terminal event, with it, after it, and at the end. */
function pass(pieces: Iterable<Uint8Array>, path = "/v1/chat/completions"): Passed {
  const hold = createEventHold(path);
  const passed: Passed = { sent: "", terminal: undefined, after: "", rest: "" };
  for (const piece of pieces) {
    const bytes = text.decode(hold.push(piece));
    if (passed.terminal === undefined) passed.sent += bytes;
    else passed.after += bytes;
    const terminal = hold.takeTerminal();
    if (terminal !== undefined) passed.terminal = text.decode(terminal);
  }
  passed.rest = text.decode(hold.end());
  return passed;
}

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
    const hold = createEventHold("/v1/chat/completions");
    const sent = ["data: a\n", "\ndata: {", "}\n", "\n", "data: c\n\nda"].map((piece) =>
      text.decode(hold.push(utf8.encode(piece))),
    );
    expect(sent).toEqual(["", "data: a\n\n", "", "data: {}\n\n", "data: c\n\n"]);
    expect(text.decode(hold.end())).toBe("da");
  });

  test("wait no longer than 64 KiB", () => {
    const hold = createEventHold("/v1/chat/completions");
    expect(hold.push(utf8.encode(`data: ${"x".repeat(60_000)}`))).toHaveLength(0);
    expect(hold.push(utf8.encode("y".repeat(10_000)))).toHaveLength(70_006);
    expect(text.decode(hold.push(utf8.encode("z\n\ndata: b")))).toBe("z\n\n");
    expect(text.decode(hold.push(utf8.encode("\n\n")))).toBe("data: b\n\n");
  });
});

describe("the terminal event", () => {
  const before = 'data: {"text":"say [DONE], message_stop or response.completed"}\n\n';
  test.each([
    ["/v1/chat/completions", "data: [DONE]\n\n"],
    ["/v1/chat/completions", "data:[DONE]\r\n\r\n"],
    ["/v1/completions", "data: [DONE] \n\n"],
    ["/v1/messages", 'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    ["/v1/messages", 'data: {"type": "message_stop"}\n\n'],
    ["/v1/responses", 'event: response.completed\ndata: {"type":"response.completed"}\n\n'],
    ["/v1/responses", 'event: response.incomplete\ndata: {"response":{}}\n\n'],
    ["/v1/responses", "event: response.failed\ndata: {}\n\n"],
    ["/v1/responses", 'data: {"response":{"id":"r"},"type":"response.completed"}\n\n'],
  ])("on %s is %j, with all that follows in its chunk, and nothing is held after it", (path, terminal) => {
    const stream = `${before}${terminal}: bye\n\nhalf`;
    expect(pass(one(stream), path)).toEqual({
      sent: before,
      terminal: `${terminal}: bye\n\nhalf`,
      after: "",
      rest: "",
    });
    const bytes = utf8.encode(stream);
    const atRandom = Array.from({ length: 50 }, (_, seed) => cutAtRandom(bytes, createRandom(seed)));
    for (const pieces of [...cutAtEveryByte(bytes), ...atRandom]) {
      const passed = pass(pieces, path);
      expect(passed.sent).toBe(before);
      expect(passed.terminal).toStartWith(terminal.trimEnd());
      expect(whole(passed)).toBe(stream);
    }
  });

  test.each([
    ["/v1/chat/completions", before],
    ["/v1/messages", 'event: content_block_delta\ndata: {"delta":{"text":"message_stop"}}\n\n'],
    ["/v1/responses", 'event: response.output_text.delta\ndata: {"delta":"response.completed"}\n\n'],
    ["/v1/responses", 'data: {"type":"response.output_text.delta","delta":"response.completed"}\n\n'],
  ])("on %s is not %j", (path, stream) => {
    expect(pass(one(stream), path)).toEqual({ sent: stream, terminal: undefined, after: "", rest: "" });
  });

  test("that is too long to hold keeps back the lines that end it", () => {
    const event = `event: response.completed\ndata: {"type":"response.completed","x":"${"x".repeat(200_000)}"}`;
    const pieces = [...one(before + event.slice(0, 100_000)), ...one(`${event.slice(100_000)}\n\n`), ...one("late")];
    const passed = pass(pieces, "/v1/responses");
    expect(passed.sent).toBe(before + event);
    expect([passed.terminal, passed.after]).toEqual(["\n\n", "late"]);
    const atOnce = pass(one(`${before}${event}\n\n: bye\n\n`), "/v1/responses");
    expect([atOnce.sent, atOnce.terminal]).toEqual([before + event, "\n\n: bye\n\n"]);
  });

  test("may follow a long event in one chunk", () => {
    const long = `data: ${"x".repeat(70_000)}`;
    const passed = pass([...one(long), ...one("x\n\ndata: b\n\ndata: [DONE]\n\n")]);
    expect([passed.sent, passed.terminal]).toEqual([`${long}x\n\ndata: b\n\n`, "data: [DONE]\n\n"]);
  });
});

test("no byte is lost, added or moved, wherever a stream is cut", () => {
  const stream = `\uFEFF: a\r\ndata: b\r\n\r\ndata: ${"c".repeat(300)}\n\n\rdata: d\r\r\n\ndata: [DONE]\n\n\nrest`;
  for (let seed = 0; seed < 300; seed++) {
    expect(whole(pass(cutAtRandom(utf8.encode(stream), createRandom(seed))))).toBe(stream.slice(1));
  }
});
