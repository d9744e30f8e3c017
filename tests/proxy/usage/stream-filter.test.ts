import { describe, expect, test } from "bun:test";
import type { UsageAdded } from "../../../src/proxy/rewrite/stream-options.ts";
import { createStreamUsageFilter } from "../../../src/proxy/usage/stream-filter.ts";
import { usageServers, type UsageAsked, type UsageServer } from "../../fixtures/usage-servers.ts";
import { createRandom, cutAtEveryByte, cutAtRandom } from "../../support/random.ts";

const final: UsageAdded = { includeUsage: true, continuousUsage: false };
const both: UsageAdded = { includeUsage: true, continuousUsage: true };
const continuousOnly: UsageAdded = { includeUsage: false, continuousUsage: true };

function filtered(added: UsageAdded, pieces: Iterable<Uint8Array>): string {
  const filter = createStreamUsageFilter(added);
  if (filter === undefined) throw new Error("Nothing to filter");
  const output = Array.from(pieces, (piece) => filter.push(piece));
  return Buffer.concat([...output, filter.end()]).toString();
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
}

describe("stream usage filter", () => {
  test("is undefined if nothing was added", () => {
    expect(createStreamUsageFilter({ includeUsage: false, continuousUsage: false })).toBeUndefined();
  });

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
    const filter = createStreamUsageFilter(both);
    const chunk = (finish: string): Uint8Array =>
      Buffer.from(`data: {"choices":[{"delta":{"content":"a"},"finish_reason":${finish}}]}\n\n`);
    expect(filter?.push(chunk("null"))).toEqual(chunk("null"));
    expect(filter?.push(Buffer.from(": ping\n\n"))).toEqual(Buffer.from(": ping\n\n"));
    expect(filter?.push(chunk('"stop"'))).toBeEmpty();
    expect(filter?.push(Buffer.from("data: [DONE]\n\n"))).toEqual(
      Buffer.concat([chunk('"stop"'), Buffer.from("data: [DONE]\n\n")]),
    );
    expect(filter?.end()).toBeEmpty();
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
    const filter = createStreamUsageFilter(both);
    expect(filter?.push(chunk(', "us\\u0061ge" : {"prompt_tokens" : 1}'))).toEqual(chunk(""));
    expect(filter?.push(chunk(',"usage":null'))).toEqual(chunk(""));
    expect(filter?.push(last)).toBeEmpty();
  });

  test("removes usage from any position among the members", () => {
    const cut = (json: string): string => filtered(both, [Buffer.from(`data: ${json}\n\n`)]);
    expect(cut('{"usage":{"a":1},"choices":[{"text":""}]}')).toBe('data: {"choices":[{"text":""}]}\n\n');
    expect(cut('{"choices":[{"text":""}],"usage":{"a":1}}')).toBe('data: {"choices":[{"text":""}]}\n\n');
    expect(cut('{"a":1,"usage":{"a":1},"choices":[{"text":""}]}')).toBe('data: {"a":1,"choices":[{"text":""}]}\n\n');
  });

  test("removes usage from a chunk with megabytes of white space and quotes in linear time", () => {
    const filler = `${" ".repeat(2_000_000)}${'\\"'.repeat(1_000_000)}`;
    const json = (usage: string): string => `data: {"choices":[{"text":"${filler}"}]${usage}}\n\n`;
    const before = performance.now();
    expect(filtered(both, [Buffer.from(json(',"usage":{}'))]) === json("")).toBe(true);
    expect(performance.now() - before).toBeLessThan(5000);
  });

  test("drops an event with only usage that no empty line ends", () => {
    expect(filtered(final, [Buffer.from('data: {"choices":[],"usage":{"prompt_tokens":1}}\n')])).toBe("");
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
