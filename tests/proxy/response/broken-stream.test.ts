import { describe, expect, test } from "bun:test";
import { errorFrame } from "../../../src/proxy/response/broken-stream.ts";

describe("an error in a stream", () => {
  const eventOf = (path: string): string => new TextDecoder().decode(errorFrame(path, "upstream_timeout", "r-1"));

  test.each(["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/anything"])(
    "on %s is data with an error member",
    (path) => {
      const [, json = ""] = /^data: (\{.*\})\n\n$/.exec(eventOf(path)) ?? [];
      const { error } = JSON.parse(json) as { error: object };
      expect(error).toMatchObject({ type: "timeout_error", code: "upstream_timeout", param: null });
    },
  );

  test("of messages is an event of its own name", () => {
    const [, json = ""] = /^event: error\ndata: (\{.*\})\n\n$/.exec(eventOf("/v1/messages")) ?? [];
    expect(JSON.parse(json)).toMatchObject({ type: "error", error: { type: "timeout_error" }, request_id: "r-1" });
  });
});
