import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { carryOnlyContent, endsStream } from "../../../src/proxy/stream/flags.ts";
import { mayHoldUsage } from "../../../src/proxy/stream/usage.ts";

const chunk = (delta: string, rest = ""): string =>
  `data: {"id":"chatcmpl-8f1c","object":"chat.completion.chunk","created":1763700000,"model":"m-1.5","choices":[{"index":0,"delta":${delta},"finish_reason":null}]${rest}}\n\n`;
const named = (type: string, rest = ""): string => `event: ${type}\ndata: {"type":"${type}"${rest}}\n\n`;

const content = [
  chunk('{"content":" token"}'),
  chunk('{"content":"A page. The [end] of \\"it\\"\\n"}'),
  chunk('{"content":" token"}', ',"usage":null'),
  chunk('{"content":"안녕하세요"}') + chunk('{"content":"\\uc548"}'),
  chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"path\\":\\"a.ts\\"}"}}]}'),
  named("content_block_delta", ',"index":0,"delta":{"type":"text_delta","text":"Hello"}'),
  named("content_block_stop", ',"index":0'),
  named("ping"),
  named("response.in_progress"),
  named("response.output_text.delta", ',"item_id":"msg_1","delta":"Hello"'),
  named("response.content_part.added"),
  named("response.function_call_arguments.delta", ',"delta":"{"'),
  named("response.created"),
  ": keepalive\n\n",
  chunk('{"content":"an error, \\"error\\": no member"}'),
  chunk('{"content":" token"}', ',"error":null'),
  chunk('{"content":" or"}'),
  chunk('{"content":" error"}'),
  chunk(`{"content":"${"an error ".repeat(200)}"}`),
];

const more = [
  "data: [DONE]\n\n",
  "data:[DONE]\n\n",
  named("message_stop"),
  'data: {"type":"message_stop"}\n\n',
  named("response.completed"),
  named("response.incomplete"),
  named("response.failed"),
  chunk("{}", ',"usage":{"prompt_tokens":1}'),
  chunk("{}", ',"usage":null,"usage":{"prompt_tokens":1}'),
  chunk("{}", ',"us\\u0061ge":{"prompt_tokens":1}'),
  named("message_delta", ',"usage":{"output_tokens":1}'),
  'data: {"error":{"message":"No"}}\n\n',
  'data: {"error" : "No"}\n\n',
  'error: {"code":500}\n\n',
  `${chunk("{}")}error: {"code":500}\n\n`,
  `${chunk("{}").repeat(30)}event: error\ndata: {}\n\n`,
  "event: error\ndata: {}\n\n",
  "event:error\r\ndata: {}\r\n\r\n",
];

const bytesOf = (text: string): Buffer => Buffer.from(text);

describe("carryOnlyContent", () => {
  test.each(content)("passes %j without a look at its parts", (events) => {
    expect(carryOnlyContent(bytesOf(events))).toBe(true);
  });

  test.each(more)("stops at %j, wherever it stands among content, short or long", (event) => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...content), { maxLength: 12 }),
        fc.array(fc.constantFrom(...content), { maxLength: 12 }),
        (before, after) => !carryOnlyContent(bytesOf(before.join("") + event + after.join(""))),
      ),
    );
  });

  test("never passes what ends a stream or has usage, whatever its bytes", () => {
    const words = [
      "[DONE]",
      "[D",
      "message_stop",
      "message_",
      "e_stop",
      "response.",
      "completed",
      "incomplete",
      "failed",
    ];
    const marks = [
      'usage"',
      'usage":null',
      ":{",
      ":",
      "null",
      '"',
      "\\u00",
      "\\u",
      "data: ",
      "event: ",
      '{"type":"',
      "\n",
      "\n\n",
      "a",
      "e.",
    ];
    const piece = fc.constantFrom(...words, ...marks);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const events = bytesOf(`${pieces.join("")}\n\n`);
        if (!carryOnlyContent(events)) return;
        for (const event of events.toString().split(/(?<=\n\n)/)) expect(endsStream(Buffer.from(event))).toBe(false);
        expect(mayHoldUsage(events)).toBe(false);
      }),
      { numRuns: 5000 },
    );
  });
});
