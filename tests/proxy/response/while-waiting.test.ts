import { expect, test } from "bun:test";
import { errorResponse } from "../../../src/proxy/errors.ts";
import { commentsUntil } from "../../../src/proxy/response/while-waiting.ts";

/** What the client gets before the stream breaks. */
async function textOf(response: Response): Promise<string> {
  const text: string[] = [];
  try {
    for await (const bytes of response.body ?? []) text.push(Buffer.from(bytes).toString());
  } catch {
    return text.join("").replaceAll(": keepalive\n\n", "");
  }
  throw new Error("The stream ended cleanly");
}

const waiting = { path: "/v1/responses", keepaliveMs: 60_000, rank: () => undefined };

test("a stream that got a comment gets the whole error that it would have got as a response", async () => {
  const members = { type: "usage_limit_reached", resets_at: 1_777_647_600, resets_in_seconds: 60 };
  const refusal = errorResponse("tokens_per_day", { message: "Used up.", headers: [], members });
  const text = await textOf(commentsUntil(Promise.resolve(refusal), waiting));
  const [, json = ""] = /^data: (.*)\n\n$/.exec(text) ?? [];
  expect(JSON.parse(json)).toEqual({
    type: "error",
    error: { message: "Used up.", param: null, code: "tokens_per_day", ...members },
  });
});

test("a stream behind a comment loses its byte order mark", async () => {
  const events = new Response("\uFEFFdata: a\n\n\uFEFFdata: b\n\n");
  const response = commentsUntil(Promise.resolve(events), waiting);
  expect(Buffer.from(await response.bytes()).toString()).toBe(": keepalive\n\ndata: a\n\n\uFEFFdata: b\n\n");
});

test("a stream that waits for a backend is told where it stands, until it has its response", async () => {
  const [response, asked] = [Promise.withResolvers<Response>(), Promise.withResolvers<undefined>()];
  const ranks = [{ position: 3, length: 12 }, { position: 2, length: 11 }, undefined];
  const stream = commentsUntil(response.promise, {
    ...waiting,
    keepaliveMs: 5,
    rank: () => (ranks.length === 0 ? asked.promise : Promise.resolve(ranks.shift())),
  });
  const reader = stream.body?.getReader();
  const next = async (): Promise<string> => Buffer.from((await reader?.read())?.value ?? []).toString();
  expect([await next(), await next(), await next()]).toEqual([
    ": waiting, 3 of 12\n\n",
    ": waiting, 2 of 11\n\n",
    ": keepalive\n\n",
  ]);
  response.resolve(new Response("data: a\n\n"));
  expect(await next()).toBe("data: a\n\n");
  // It knows too late.
  asked.resolve(undefined);
  expect(await reader?.read()).toEqual({ done: true, value: undefined });
});
