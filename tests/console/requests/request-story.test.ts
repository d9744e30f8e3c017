import { describe, expect, test } from "bun:test";
import type { LoggedRequest } from "../../../console/src/requests/queries.ts";
import { type Beside, outputSpeed, requestStory } from "../../../console/src/requests/request-story.ts";

const sent = {
  backend: "gpu-a",
  reason: "only",
  sends: null,
  outcome: "completed",
  status: 200,
  code: null,
  cause: null,
  message: null,
  streamed: true,
  uncounted: false,
  estimated_tokens: null,
  cache_loss: null,
  waited_for: null,
  priority: null,
  output_tokens: 304,
  queue_ms: 2,
  upstream_ms: 250,
  first_byte_ms: 252,
  duration_ms: 11_074,
} as Partial<LoggedRequest> as LoggedRequest;
const unsent = {
  ...sent,
  backend: null,
  reason: null,
  queue_ms: null,
  upstream_ms: null,
  first_byte_ms: null,
  output_tokens: null,
  duration_ms: 4,
};
const answered = "gpu-a began to answer after 250 ms and wrote 304 tokens at 28 a second.";

describe("the story of a request", () => {
  test.each<[Partial<LoggedRequest>, Beside, string]>([
    [{}, {}, answered],
    [
      { waited_for: "limits", queue_ms: 3650 },
      { maxConcurrency: 3 },
      `Waited 3.65 s because this key may run 3 at once. ${answered}`,
    ],
    [{ waited_for: "limits", queue_ms: 3650 }, {}, `Waited 3.65 s for the limits of its key. ${answered}`],
    [{ waited_for: "backend", queue_ms: 3650 }, {}, `Waited 3.65 s for a place at a backend. ${answered}`],
    [{ waited_for: "prefill", queue_ms: 3650 }, {}, `Waited 3.65 s until another long prompt was read. ${answered}`],
    [{ waited_for: "limits", queue_ms: 12 }, { maxConcurrency: 3 }, answered],
    [
      { reason: "spill", sends: 2 },
      {},
      `It was sent 2 times. It went to gpu-a because the others were full or out. ${answered}`,
    ],
    [
      { cache_loss: "tools_changed" },
      { sums: { prompt_tokens: 9000, from_cache_tokens: 12 }, cost: "$0.01" },
      `${answered} 12 of 9,000 input tokens came from the cache because its tools are not those of the turn before. It cost $0.01.`,
    ],
    [{}, { sums: { prompt_tokens: 9, from_cache_tokens: 4 } }, `${answered} 4 of 9 input tokens came from the cache.`],
    [{}, { sums: { prompt_tokens: 9, from_cache_tokens: 0 } }, answered],
    [{ status: 500, output_tokens: null }, {}, "gpu-a began to answer after 250 ms, with 500."],
    [{ output_tokens: 1 }, {}, "gpu-a began to answer after 250 ms and wrote 1 token."],
    [
      { outcome: "client_left", uncounted: true, duration_ms: 900 },
      {},
      "gpu-a began to answer after 250 ms; it was cut before its output was counted. Its client left after 900 ms.",
    ],
    [
      { outcome: "upstream_failed", upstream_ms: null, cause: "ECONNREFUSED", output_tokens: null },
      {},
      "gpu-a sent no answer, then failed: ECONNREFUSED.",
    ],
    [
      { outcome: "timed_out", upstream_ms: null, output_tokens: null, cause: "connect_timeout" },
      {},
      "gpu-a sent no answer, then sent nothing for too long: connect_timeout.",
    ],
    [{ outcome: "ended_by_admin" }, {}, `${answered} It was ended in the console after 11.1 s.`],
    [
      { estimated_tokens: 1234 },
      {},
      `${answered} Its limits of tokens were charged 1,234 by an estimate, because the backend reported none.`,
    ],
  ])("with %p and %j is: %s", (fields, beside, story) => {
    expect(requestStory({ ...sent, ...fields }, beside).join(" ")).toBe(story);
  });

  test.each<[Partial<LoggedRequest>, string]>([
    [
      { outcome: "limited", code: "tokens_per_day", message: "This API key is limited to 5 tokens a day; wait." },
      "Refused by a limit: This API key is limited to 5 tokens a day; wait.",
    ],
    [{ outcome: "limited", code: "tokens_per_day" }, "Refused: its limit of tokens per day was used up."],
    [{ outcome: "refused", code: "invalid_api_key", status: 401 }, "Refused: invalid_api_key."],
    [{ status: 200 }, "Tollgate responded itself, with 200."],
    [{ outcome: "client_left", duration_ms: 900 }, "Its client left after 900 ms, before it was sent."],
  ])("that was not sent, with %p, is: %s", (fields, story) => {
    expect(requestStory({ ...unsent, ...fields }).join(" ")).toBe(story);
  });
});

describe("the output speed", () => {
  const request = { first_byte_ms: 50, duration_ms: 1050, output_tokens: 101, streamed: true };

  test("counts the tokens after the first byte", () => {
    expect(outputSpeed(request)).toBe(100);
  });

  test.each([
    ["a response that was not streamed", { streamed: false }],
    ["unknown tokens", { output_tokens: null }],
    ["one token", { output_tokens: 1 }],
    ["a response without bytes", { first_byte_ms: null }],
    ["a response that took no time", { duration_ms: 50 }],
  ])("is unknown for %s", (_, fields) => {
    expect(outputSpeed({ ...request, ...fields })).toBeUndefined();
  });
});
