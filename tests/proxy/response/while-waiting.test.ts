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

const waiting = { path: "/v1/responses", keepaliveMs: 60_000 };

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
