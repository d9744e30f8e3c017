import { expect, test } from "bun:test";
import { errorResponse } from "../../../src/proxy/errors.ts";
import { heartbeatsUntil } from "../../../src/proxy/response/while-waiting.ts";

const heartbeat = 'data: {"type":"keepalive"}\n\n';

const waiting = {
  path: "/v1/responses",
  clientProgram: "codex_exec/0.169.0",
  keepaliveMs: 60_000,
  rank: () => undefined,
};

test("a stream that got a heartbeat gets the whole error that it would have got as a response", async () => {
  const members = { type: "usage_limit_reached", resets_at: 1_777_647_600, resets_in_seconds: 60 };
  const refusal = errorResponse("tokens_per_day", { message: "Used up.", headers: [], members });
  const text = await heartbeatsUntil(Promise.resolve(refusal), waiting).text();
  const [, json = ""] = /^event: response.failed\ndata: (.*)\n\n$/.exec(text.replace(heartbeat, "")) ?? [];
  expect(JSON.parse(json)).toMatchObject({
    response: { error: { code: "rate_limit_exceeded", message: "Used up." } },
    error: { message: "Used up.", param: null, code: "tokens_per_day", ...members },
  });
});

test("a stream behind a heartbeat loses its byte order mark", async () => {
  const events = new Response("\uFEFFdata: a\n\n\uFEFFdata: b\n\n");
  const response = heartbeatsUntil(Promise.resolve(events), waiting);
  expect(Buffer.from(await response.bytes()).toString()).toBe(`${heartbeat}data: a\n\n\uFEFFdata: b\n\n`);
});

test.each([
  ["/v1/chat/completions", ": keepalive\n\n"],
  ["/v1/messages", 'event: ping\ndata: {"type":"ping"}\n\n'],
])("a stream of %s that waits is told where it stands, until it has its response", async (path, own) => {
  const [response, asked] = [Promise.withResolvers<Response>(), Promise.withResolvers<undefined>()];
  const ranks = [{ position: 3, length: 12 }, { position: 2, length: 11 }, undefined];
  const stream = heartbeatsUntil(response.promise, {
    ...waiting,
    path,
    keepaliveMs: 5,
    rank: () => (ranks.length === 0 ? asked.promise : Promise.resolve(ranks.shift())),
  });
  const reader = stream.body?.getReader();
  const next = async (): Promise<string> => Buffer.from((await reader?.read())?.value ?? []).toString();
  expect([await next(), await next(), await next()]).toEqual([
    `: waiting, 3 of 12\n${own}`,
    `: waiting, 2 of 11\n${own}`,
    own,
  ]);
  response.resolve(new Response("data: a\n\n"));
  expect(await next()).toBe("data: a\n\n");
  // It knows too late.
  asked.resolve(undefined);
  expect(await reader?.read()).toEqual({ done: true, value: undefined });
});
