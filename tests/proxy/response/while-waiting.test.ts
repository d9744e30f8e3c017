import { expect, test } from "bun:test";
import { errorResponse } from "../../../src/proxy/errors.ts";
import { commentsUntil } from "../../../src/proxy/response/while-waiting.ts";

const megabyte = 1024 * 1024;

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

test("a response of 40 MiB that is not a stream is read to its end and not held, and the event is one of our own", async () => {
  let sent = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const text = sent === 0 ? '{"error":"' : "x".repeat(megabyte);
        if (sent++ === 41) return controller.close();
        controller.enqueue(Buffer.from(sent === 41 ? '"}' : text));
      },
    },
    { highWaterMark: 0 },
  );
  const text = await textOf(commentsUntil(Promise.resolve(new Response(body)), waiting));
  expect(text).toContain('"code":"upstream_unreachable"');
  expect(sent).toBe(42);
});
