import { expect, test } from "bun:test";
import { errorBody } from "../../../src/proxy/errors.ts";
import { dialectOf } from "../../../src/proxy/response/dialect.ts";

const comment = ": keepalive\n\n";
const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
const keepalive = 'data: {"type":"keepalive"}\n\n';
const refusal = errorBody("invalid_json", { message: "Too long." }, { requestId: "r-1" });
const { error } = refusal;

const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const bare = `data: ${JSON.stringify({ error })}\n\n`;
const ofMessages = event("error", { type: "error", error, request_id: "r-1" });
const early = event("error", {
  type: "error",
  sequence_number: 0,
  code: "invalid_prompt",
  message: "Too long.",
  param: null,
  error,
});
const failed = event("response.failed", {
  type: "response.failed",
  sequence_number: 0,
  response: { object: "response", status: "failed", error: { code: "invalid_prompt", message: "Too long." } },
  error,
});

// The path and the client; what is sent until the first event of the API has passed, and what from then on.
test.each<[path: string, client: string | undefined, before: [string, string], after: [string, string]]>([
  ["/v1/chat/completions", "OpenAI/Python", [comment, bare], [comment, bare]],
  ["/v1/completions", undefined, [comment, bare], [comment, bare]],
  ["/v1/anything", "codex_exec/0.169.0", [comment, bare], [comment, bare]],
  ["/v1/messages", "claude-cli/2.1.332", [ping, ofMessages], [ping, ofMessages]],
  ["/v1/responses", undefined, [comment, early], [keepalive, failed]],
  ["/v1/responses", "OpenAI/Python", [comment, early], [keepalive, failed]],
  ["/v1/responses", "ai-sdk/codex", [comment, early], [keepalive, failed]],
  ["/v1/responses", "codex_exec/0.169.0", [keepalive, failed], [keepalive, failed]],
  ["/v1/responses", "codex_cli_rs/0.170.1", [keepalive, failed], [keepalive, failed]],
  ["/v1/responses", "Codex Desktop/0.171.0", [keepalive, failed], [keepalive, failed]],
])("%s to %s has heartbeats and errors of its own", (path, client, before, after) => {
  const dialect = dialectOf(path, client);
  for (const [voice, said] of [
    [dialect.before, before],
    [dialect.after, after],
  ] as const) {
    expect([voice.heartbeat, voice.error(refusal, 400)]).toEqual(said);
    expect(voice.endsCleanly).toBe(/^codex/i.test(client ?? "") && path === "/v1/responses" ? true : undefined);
  }
});

test.each<[own: { code?: string | number; type?: string }, status: number, code: string]>([
  [{ code: "context_length_exceeded" }, 400, "context_length_exceeded"],
  [{ code: 500, type: "server_error" }, 400, "server_error"],
  [{ type: "rate_limit_exceeded" }, 503, "rate_limit_exceeded"],
  [{ type: "BadRequestError", code: 400 }, 400, "invalid_prompt"],
  [{}, 401, "invalid_prompt"],
  [{}, 408, "invalid_prompt"],
  [{ code: "tokens_per_day" }, 429, "rate_limit_exceeded"],
  [{}, 500, "server_error"],
  [{}, 504, "server_error"],
])("under /v1/responses an error of %j with status %d is %s", (own, status, code) => {
  const body = { ...refusal, error: { ...error, ...own } };
  const { before, after } = dialectOf("/v1/responses");
  const read = (text: string): unknown => JSON.parse(text.slice(text.indexOf("{")));
  expect(read(before.error(body, status))).toMatchObject({ code, error: body.error });
  expect(read(after.error(body, status))).toMatchObject({ response: { error: { code } }, error: body.error });
});
