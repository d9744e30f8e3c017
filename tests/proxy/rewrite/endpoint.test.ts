import { expect, test } from "bun:test";
import { getEndpoint } from "../../../src/proxy/rewrite/endpoint.ts";

const chat = getEndpoint("/v1/chat/completions");
const other = getEndpoint("/v1/other");

test("each endpoint has the rewrites that its bodies support", () => {
  const chatRules = ["system_turns_to_user", "developer_to_system"];
  const messagesRules = ["system_turns_to_user", "drop_billing_line"];
  const responsesRules = ["developer_to_system", "function_tools_only"];
  const row = (path: string) => Object.values(getEndpoint(path));
  expect(row("/v1/chat/completions")).toEqual([true, true, "message", false, true, "messages", chatRules]);
  expect(row("/v1/completions")).toEqual([true, false, undefined, false, true, undefined, []]);
  expect(row("/v1/messages")).toEqual([true, true, "member", true, false, "messages", messagesRules]);
  expect(row("/v1/responses")).toEqual([true, true, undefined, false, false, "input", responsesRules]);
  expect(row("/v1/embeddings")).toEqual([true, false, undefined, false, false, undefined, []]);
  expect(row("/v1/other")).toEqual([false, false, undefined, false, false, undefined, []]);
});

test.each(["/v1/chat/completions/", "//v1//chat///completions", "/v1/chat%2Fcompletions", "/v1/chat/%63ompletions"])(
  "%s is the same endpoint, as for a backend that decodes and merges",
  (path) => {
    expect(getEndpoint(path)).toBe(chat);
  },
);

test.each([
  "/V1/chat/completions",
  "/v1/Chat/Completions",
  "/v1/chat/completions/x",
  "/v1/messages/count_tokens",
  "/chat/completions",
  "/v1/chat/completions%",
  "/v1/chat%252Fcompletions",
  "",
  "/",
])("%s is another endpoint", (path) => {
  expect(getEndpoint(path)).toBe(other);
});
