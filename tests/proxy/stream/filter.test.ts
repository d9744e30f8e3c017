import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { UsageAdded } from "../../../src/proxy/rewrite/requested-stream.ts";
import { StreamUsageFilter } from "../../../src/proxy/stream/filter.ts";
import { carryOnlyContent } from "../../../src/proxy/stream/flags.ts";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import { usageServers, type UsageAsked, type UsageServer } from "../../fixtures/usage-servers.ts";
import { createRandom, cutAtEveryByte, cutAtRandom } from "../../support/random.ts";
import { threadMs } from "../../support/processor-time.ts";

const final: UsageAdded = { includeUsage: true, continuousUsage: false };
const both: UsageAdded = { includeUsage: true, continuousUsage: true };
const continuousOnly: UsageAdded = { includeUsage: false, continuousUsage: true };

/** What a client gets of a stream at once, without a wait for its count; at its end what waits. */
function startFilter(added: UsageAdded) {
  const filter = new StreamUsageFilter(added);
  const passage = new Passage(kindOf("text/event-stream", null), { listener: {}, filter });
  return {
    push(piece: Uint8Array): Uint8Array {
      const ready = passage.push(piece);
      const end = passage.held.take();
      return end === undefined ? ready : Buffer.concat([ready, end]);
    },
    end(): Uint8Array {
      void passage.end();
      return passage.rest();
    },
  };
}

function filtered(added: UsageAdded, pieces: Iterable<Uint8Array>): string {
  const { push, end } = startFilter(added);
  const output = Array.from(pieces, push);
  return Buffer.concat([...output, end()]).toString();
}

function expectInvisible(server: UsageServer, client: UsageAsked, added: UsageAdded): void {
  const expected = server.stream(client);
  const asked = {
    include: client.include || added.includeUsage,
    continuous: client.continuous || added.continuousUsage,
  };
  const bytes = Buffer.from(server.stream(asked));
  for (const pieces of cutAtEveryByte(bytes)) expect(filtered(added, pieces)).toBe(expected);
  for (let seed = 0; seed < 50; seed++) expect(filtered(added, cutAtRandom(bytes, createRandom(seed)))).toBe(expected);
  expect(
    filtered(
      added,
      bytes
        .toString()
        .split(/(?<=\n\n)/)
        .map((event) => Buffer.from(event)),
    ),
  ).toBe(expected);
}

describe("stream usage filter", () => {
  const ended = 'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
  const counts = '"usage":{"prompt_tokens":1,"completion_tokens":2}';

  test.each(usageServers)("hides from a client of $server that the proxy requested the final usage", (server) => {
    expectInvisible(server, { include: false, continuous: false }, final);
  });

  test.each(usageServers.filter(({ continuous }) => continuous))(
    "hides from a client of $server that the proxy requested usage in every chunk",
    (server) => {
      expectInvisible(server, { include: false, continuous: false }, both);
      // A client that requests the final usage itself keeps it.
      expectInvisible(server, { include: true, continuous: false }, continuousOnly);
    },
  );

  test("passes every event as soon as it is complete, except the last of a choice, which waits for the next", () => {
    const filter = startFilter(both);
    const chunk = (finish: string): Uint8Array =>
      Buffer.from(`data: {"choices":[{"delta":{"content":"a"},"finish_reason":${finish}}]}\n\n`);
    expect(filter.push(chunk("null"))).toEqual(chunk("null"));
    expect(filter.push(Buffer.from(": ping\n\n"))).toEqual(Buffer.from(": ping\n\n"));
    expect(filter.push(chunk('"stop"'))).toBeEmpty();
    expect(filter.push(Buffer.from("data: [DONE]\n\n"))).toEqual(
      Buffer.concat([chunk('"stop"'), Buffer.from("data: [DONE]\n\n")]),
    );
    expect(filter.end()).toBeEmpty();
  });

  test.each(['""', '"eos"', '"STOP"', '"abort"', '"end_turn"'])(
    "takes no finish_reason %s for an end, which no token waits for",
    (finish) => {
      for (const mode of [final, both]) {
        const filter = startFilter(mode);
        const token = Buffer.from(`data: {"choices":[{"delta":{"content":"a"},"finish_reason":${finish}}]}\n\n`);
        for (let n = 0; n < 3; n++) expect(filter.push(token)).toEqual(token);
        expect(filter.push(Buffer.from(`data: {"choices":[],${counts}}\n\n`))).toBeEmpty();
      }
    },
  );

  test.each(["stop", "length", "tool_calls", "content_filter", "function_call", "st\\u006fp"])(
    "takes %s for an end, which waits for the usage after it",
    (finish) => {
      const filter = startFilter(final);
      const end = Buffer.from(`data: {"choices":[{"delta":{},"finish_reason":"${finish}"}]}\n\n`);
      expect(filter.push(end)).toBeEmpty();
      expect(filter.push(Buffer.from("data: [DONE]\n\n"))).toEqual(
        Buffer.concat([end, Buffer.from("data: [DONE]\n\n")]),
      );
    },
  );

  test("passes comment lines at once, also in front of what it drops", () => {
    const filter = startFilter(final);
    const sent = [":", "\n", ": a\r\n", ended, ": b\n", `data: {"choices":[],${counts}}\n\n`, ":\n"].map((piece) =>
      Buffer.from(filter.push(Buffer.from(piece))).toString(),
    );
    expect(sent).toEqual(["", ":\n", ": a\r\n", "", `${ended}: b\n`, "", ":\n"]);
  });

  test.each([
    ["a field after its data", `${ended}data: {"a\nid: 7`],
    ["an error's data in two lines", `${ended}data: {"error":\ndata: {"message":"x"}}`],
    ["void data", `${ended}data:\n`],
    ["no blank line", `${ended}data: {"a":1}\n`],
    ["a byte order mark", `\uFEFF${ended}data: [DONE]\n`],
  ])("passes a last event with %s", (_, stream) => {
    for (const pieces of cutAtEveryByte(Buffer.from(stream))) expect(filtered(both, pieces)).toBe(stream);
  });

  test.each(["\n", "\r\n\n", ":\n", "\n: a\n\n"])("drops a torn chunk of usage after %j", (between) => {
    const stream = `${ended}${between}`;
    expect(filtered(final, [Buffer.from(`${stream}data: {"id":"c","choices":[],"usa`)])).toBe(stream);
  });

  test("hides usage in a first event that a byte order mark precedes", () => {
    const first = (usage: string): string => `\uFEFFdata: {"choices":[{"text":"a"}]${usage}}\n\n`;
    for (const pieces of cutAtEveryByte(Buffer.from(first(`,${counts}`))))
      expect(filtered(both, pieces)).toBe(first(""));
  });

  test("changes no byte beside the usage: odd numbers, escapes, white space, invalid UTF-8", () => {
    const rest = '"seed": 12345678901234567890 ,"x":1.0,"\\u0061":"\\/" , "y" : [ ]';
    const chunk = (usage: string): Buffer =>
      Buffer.concat([
        Buffer.from(`event: chunk\ndata:{ "choices" : [{"delta":{},"z":"`),
        Buffer.from([0xff, 0xfe, 0xc3]),
        Buffer.from(`"}] ${usage}, ${rest} }\n\n`),
      ]);
    const last = Buffer.from('data: {"choices": [], "usage" : {"prompt_tokens":1}}\n\n');
    const filter = startFilter(both);
    expect(filter.push(chunk(', "us\\u0061ge" : {"prompt_tokens" : 1}'))).toEqual(chunk(""));
    expect(filter.push(chunk(',"usage":null'))).toEqual(chunk(""));
    expect(filter.push(last)).toBeEmpty();
  });

  test("removes usage from any position among the members", () => {
    const cut = (json: string): string => filtered(both, [Buffer.from(`data: ${json}\n\n`)]);
    expect(cut('{"usage":{"prompt_tokens":1},"choices":[{"text":""}]}')).toBe('data: {"choices":[{"text":""}]}\n\n');
    expect(cut('{"choices":[{"text":""}],"usage":{"prompt_tokens":1}}')).toBe('data: {"choices":[{"text":""}]}\n\n');
    expect(cut('{"a":1,"usage":{"prompt_tokens":1},"choices":[{"text":""}]}')).toBe(
      'data: {"a":1,"choices":[{"text":""}]}\n\n',
    );
  });

  test("removes usage from a chunk with megabytes of white space and quotes in linear time", () => {
    // It arrives at once, so that nothing is held.
    const filler = `${" ".repeat(2_000_000)}${'\\"'.repeat(1_000_000)}`;
    const json = (usage: string): string => `data: {"choices":[{"text":"${filler}"}]${usage}}\n\n`;
    let text = "";
    expect(threadMs(() => (text = filtered(both, [Buffer.from(json(',"usage":{}'))])))).toBeLessThan(5000);
    expect(text === json("")).toBe(true);
  });

  test("drops an event with only usage that no empty line ends", () => {
    expect(filtered(final, [Buffer.from('data: {"choices":[],"usage":{"prompt_tokens":1}}\n')])).toBe("");
  });

  test("sends a chunk with usage and an error without its usage", () => {
    const added = (usage: string): string =>
      `data: {"id":"c","choices":[]${usage},"error":{"message":"Out of memory"}}\n\n`;
    for (const mode of [final, both]) {
      expect(filtered(mode, [Buffer.from(ended + added(`,${counts}`))])).toBe(ended + added(""));
    }
  });

  test.each([
    ["vLLM's metrics", `${counts},"metrics":{"time_to_first_token_ms":1.5}`],
    ["citations", `${counts},"citations":["a"]`],
    ["SGLang's own", `"sglext":{"a":1},${counts}`],
    ["Groq's", `"x_groq":{"id":"r"},${counts}`],
    ["members that the chunk before has too, and empty ones", `"model_id":"b",${counts},"error":null,"w":[]`],
    ["counts of other names", '"usage":{"tokens":7}'],
    ["usage that is a list", '"usage":[7]'],
    ["usage that is a number", '"usage":7'],
    ["usage that is a text", '"usage":"7 tokens","metrics":{"a":1}'],
  ])("drops a chunk without choices whole: %s", (_, members) => {
    const added = `data: {"id":"c","choices":[],${members}}\n\n`;
    for (const mode of [final, both]) {
      for (const between of ["", ": ping\n\n"]) {
        const stream = (last: string): string => `${ended}${between}${last}data: [DONE]\n\n`;
        expect(filtered(mode, [Buffer.from(stream(added))])).toBe(stream(""));
      }
    }
    expect(filtered(continuousOnly, [Buffer.from(ended + added)])).toBe(ended + added);
  });

  test("keeps chunks without choices that are of something else, such as Azure's at the start", () => {
    const first = 'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}],"usage":null}\n\n';
    const chunk = (usage: string): string => `data: {"choices":[{"delta":{"content":"a"}}]${usage}}\n\n`;
    const stream = `${first.replace(',"usage":null', "")}${chunk("")}${ended}`;
    expect(filtered(final, [Buffer.from(stream)])).toBe(stream);
  });

  test("puts llama.cpp's timings into the chunk that ends the choice, and its other members nowhere", () => {
    const timed = (timings: string): string => ended.replace("}\n\n", `${timings}}\n\n`);
    const added = `data: {"choices":[],${counts},"timings":{"n":1},"other":2}\n\n`;
    expect(filtered(final, [Buffer.from(ended + added)])).toBe(timed(',"timings":{"n":1}'));
    expect(filtered(final, [Buffer.from(`${ended}: ping\n\n${added}`)])).toBe(`${ended}: ping\n\n`);
  });

  test("drops what came of a chunk with only usage when the stream ends inside it", () => {
    const usageChunks = [
      `data: {"id":"c","choices":[],${counts}}`,
      `data: {"id":"c","choices":[{"index":0,"delta":{}}],${counts}}`,
    ];
    for (const before of [ended, `${ended}: ping\n\n`]) {
      for (const added of usageChunks) {
        for (let length = 0; length < added.length; length++) {
          expect(filtered(both, [Buffer.from(before + added.slice(0, length))])).toBe(before);
        }
      }
    }
  });

  test("keeps the beginning of any other event at the end of a stream", () => {
    const running = ended.replace('"stop"', "null");
    for (const stream of [
      `${ended}data: [DO`,
      `${ended}data: {"error":{`,
      `${running}data: {"choices":[`,
      `${ended}data: [DONE]\n\ndata: {"a`,
    ]) {
      expect(filtered(both, [Buffer.from(stream)])).toBe(stream);
    }
  });

  test("leaves a client that asked for usage that of the last chunk, if no chunk with only usage follows", () => {
    const chunk = (index: number, finish: string, usage: string): string =>
      `data: {"choices":[{"index":${index},"delta":{"content":"a"},"finish_reason":${finish}}]${usage}}\n\n`;
    const stream = (running: string, last: string): string =>
      chunk(0, "null", running) + chunk(1, "null", running) + chunk(0, '"stop"', running) + chunk(1, '"stop"', last);
    const sent = stream(`,${counts}`, `,${counts}`);
    const done = "data: [DONE]\n\n";
    expect(filtered(continuousOnly, [Buffer.from(sent + done)])).toBe(stream("", `,${counts}`) + done);
    expect(filtered(both, [Buffer.from(sent + done)])).toBe(stream("", "") + done);
    // Some end without.
    expect(filtered(continuousOnly, [Buffer.from(sent)])).toBe(stream("", `,${counts}`));
  });

  test("hides llama.cpp's running counts but in the chunks that end a choice, and adds them up", async () => {
    const timings = (output: number): string =>
      `,"timings":{"cache_n":4,"prompt_n":6,"predicted_ms":1.5,"predicted_n":${output}}`;
    const chunk = (index: number, finish: string, more: string): string =>
      `data: {"choices":[{"index":${index},"delta":{"content":"a"},"finish_reason":${finish}}]${more},"id":"c"}\n\n`;
    const stream = (timed: (output: number) => string): string =>
      chunk(0, "null", timed(1)) + chunk(1, "null", timed(1)) + chunk(0, "null", timed(2)) + chunk(1, "null", timed(2));
    const end = chunk(0, '"stop"', timings(2)) + chunk(1, '"stop"', timings(3));
    const filter = new StreamUsageFilter({ ...both, timedChoices: 2 });
    const passage = new Passage(kindOf("text/event-stream", null), { listener: {}, filter });
    expect(Buffer.from(passage.push(Buffer.from(stream(timings)))).toString()).toBe(stream(() => ""));
    expect(passage.seen()).toMatchObject({ inputTokens: 10, cachedInputTokens: 4, outputTokens: 4 });
    const sent = [passage.push(Buffer.from(end)), passage.push(Buffer.from("data: [DONE]\n\n"))];
    expect(Buffer.concat(sent).toString()).toBe(end);
    expect(await passage.end()).toMatchObject({ inputTokens: 10, cachedInputTokens: 4, outputTokens: 5 });
  });

  describe("of a backend with running usage and no chunk with only that", () => {
    const chunk = (finish: string, usage: string): string =>
      `data: {"id":"c","choices":[{"delta":{"content":"a"},"finish_reason":${finish}}]${usage}}\n\n`;
    const [running, done] = [`,${counts}`, "data: [DONE]\n\n"];
    const last = `data: {"id":"c","choices":[],${counts}}\n\n`;

    test.each([
      ["a comment after its end", chunk('"stop"', running) + ": ping\n\n", chunk('"stop"', "") + ": ping\n\n"],
      ["no usage at its end", chunk('"stop"', ""), chunk('"stop"', "")],
      ["null at its end", chunk('"stop"', ',"usage":null'), chunk('"stop"', ',"usage":null')],
      ["an end that no API names", chunk('"eos"', running), chunk('"eos"', "")],
      ["no end", "", ""],
    ])("a client that asked for usage gets it at the end, once: %s", (_, sent, got) => {
      const stream = chunk("null", running) + chunk("null", running) + sent;
      const expected = chunk("null", "") + chunk("null", "") + got;
      for (const pieces of cutAtEveryByte(Buffer.from(stream + done)))
        expect(filtered(continuousOnly, pieces)).toBe(expected + last + done);
      expect(filtered(both, [Buffer.from(stream + done)]).includes("prompt_tokens")).toBeFalse();
      expect(filtered(continuousOnly, [Buffer.from(stream + last + done)])).toBe(expected + last + done);
      const error = 'data: {"error":{"message":"x"}}\n\n';
      expect(filtered(continuousOnly, [Buffer.from(stream + error + done)])).toBe(expected + error + done);
    });
  });

  test("takes an empty choice for one with usage only after every choice has ended", () => {
    const chunk = (index: number, delta: string, finish: string, usage: string): string =>
      `data: {"choices":[{"index":${index},"delta":${delta},"finish_reason":${finish}}]${usage}}\n\n`;
    const stream = (usage: string): string =>
      chunk(0, '{"content":"a"}', "null", usage) +
      chunk(1, '{"content":"b"}', "null", usage) +
      chunk(0, "{}", '"stop"', usage) +
      chunk(1, '{"content":""}', "null", usage) +
      chunk(1, '{"content":"c"}', "null", usage) +
      chunk(1, "{}", '"stop"', usage);
    const added = chunk(0, '{"content":"","role":"assistant"}', "null", `,${counts}`);
    expect(filtered(both, [Buffer.from(stream(`,${counts}`) + added)])).toBe(stream(""));
    expect(filtered(continuousOnly, [Buffer.from(stream(`,${counts}`) + added)])).toBe(stream("") + added);
    expect(filtered(final, [Buffer.from(stream("") + added)])).toBe(stream(""));
  });

  describe("an event of more than 64 KiB", () => {
    const long = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${"x".repeat(100_000)}"},"finish_reason":null}]`;
    const added = `data: {"id":"c","choices":[],${counts}}\n\n`;

    test("passes, and the usage after it is hidden, wherever the stream is cut", () => {
      const stream = (last: string): string => `${long}}\n\n${ended}${last}data: [DONE]\n\n`;
      const bytes = Buffer.from(stream(added));
      for (const mode of [final, both]) {
        expect(filtered(mode, [bytes])).toBe(stream(""));
        for (let seed = 0; seed < 20; seed++) {
          expect(filtered(mode, cutAtRandom(bytes, createRandom(seed)))).toBe(stream(""));
        }
      }
    });

    test("passes with its usage if it arrives in parts, because it is not held", () => {
      const withUsage = `${long},${counts}}\n\n`;
      const parts = [withUsage.slice(0, 90_000), withUsage.slice(90_000)];
      const toBytes = (text: string): Buffer => Buffer.from(text);
      expect(filtered(both, parts.map(toBytes))).toBe(withUsage);
      expect(filtered(both, [toBytes(withUsage)])).toBe(`${long}}\n\n`);
    });

    test("does not wait for the next, even if it ends a choice, and the usage after it is hidden", () => {
      const filter = startFilter(final);
      const last = Buffer.from(`${long.replace("null}]", '"stop"}]')}}\n\n`);
      expect(filter.push(last)).toEqual(last);
      expect(filter.push(Buffer.from(added))).toBeEmpty();
      expect(filter.push(Buffer.from(added.replace(counts, `${counts},"timings":{"n":1}`)))).toBeEmpty();
    });

    test("that follows the end of a choice is not taken for the usage that was requested", () => {
      const torn = `data: {"id":"c","choices":[],"x":"${"x".repeat(100_000)}`;
      expect(filtered(final, [Buffer.from(ended + torn)])).toBe(ended + torn);
    });
  });

  test("does not change events that are not completion chunks", () => {
    const stream = [
      'data: {"usage":{"input_tokens":1}}\n\n',
      'data: [{"choices":[],"usage":{}}]\n\n',
      'data: {"choices":{},"usage":{}}\n\n',
      'data: {"choices":[],\ndata: "usage":{"prompt_tokens":1}}\n\n',
      'data: {"choices":[],"usage":{"prompt_tokens":1}\n\n',
      'event: usage\nid: {"choices":[],"usage":{}}\n\n',
    ].join("");
    expect(filtered(both, [Buffer.from(stream)])).toBe(stream);
  });
});

test("events that pass change nothing if the filter does not see them", () => {
  const usages = ["", ',"usage":null', ',"usage":{"prompt_tokens":9,"completion_tokens":5}'];
  const event = fc
    .record({
      index: fc.nat({ max: 1 }),
      finish: fc.constantFrom("null", "null", "null", '"stop"'),
      usage: fc.constantFrom(...usages, ...usages.slice(0, 2)),
      isAlone: fc.constantFrom(false, false, false, true),
    })
    .map(({ index, finish, usage, isAlone }) => {
      const choice = `{"index":${index},"delta":{"content":"a"},"finish_reason":${finish}}`;
      return `data: {"id":"c","choices":[${isAlone ? "" : choice}]${usage}}\n\n`;
    });
  const texts = fc.array(event, { maxLength: 20 });
  const added = fc.record({ includeUsage: fc.boolean(), continuousUsage: fc.boolean() });
  let leftOut = 0;
  fc.assert(
    fc.property(texts, added, (events, options) => {
      const [skimmed, cut] = [new StreamUsageFilter(options), new StreamUsageFilter(options)];
      const all = events.map((text) => Buffer.from(text));
      const sent = all.flatMap((bytes) => {
        if (!carryOnlyContent(bytes) || !skimmed.passes(bytes)) return skimmed.event(bytes);
        leftOut += 1;
        return [bytes];
      });
      const expected = [...all.flatMap((bytes) => cut.event(bytes)), ...cut.end(Buffer.of())];
      expect(Buffer.concat([...sent, ...skimmed.end(Buffer.of())]).toString()).toBe(Buffer.concat(expected).toString());
    }),
    { numRuns: 5000 },
  );
  expect(leftOut).toBeGreaterThan(1000);
});
