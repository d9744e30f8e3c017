import { expect, test } from "bun:test";
import { type CountingRule, countingRuleOf } from "../../../src/proxy/response/count.ts";

test.each<[string, string, CountingRule]>([
  ["POST", "/v1/chat/completions", "all"],
  ["POST", "/v1/embeddings", "all"],
  ["POST", "/v1/anything/new", "all"],
  ["GET", "/v1/chat/completions/chat_1", "none"],
  ["PUT", "/v1/chat/completions", "none"],
  ["GET", "/v1/models", "none"],
  ["POST", "/v1/responses", "all"],
  ["POST", "/v1/responses/", "all"],
  ["POST", "/v1/responses/compact", "all"],
  ["POST", "/v1/responses/cancel", "all"],
  ["POST", "/v1/responses/resp_1/other", "all"],
  ["GET", "/v1/responses", "none"],
  ["GET", "/v1/responses/resp_1", "read"],
  ["GET", "/v1/responses/resp_1/input_items", "read"],
  ["POST", "/v1/responses/resp_1/cancel", "read"],
  ["POST", "/v1//responses//resp_1/%63ancel/", "read"],
  ["DELETE", "/v1/responses/resp_1", "none"],
  ["GET", "/v1//responses/resp_1", "read"],
  ["GET", "/v1/%72esponses/resp_1", "read"],
  ["POST", "/v1/responses2", "all"],
  ["POST", "/v1/files", "none"],
  ["GET", "/v1/files/file_1/content", "none"],
  ["POST", "/v1/batches", "none"],
  ["POST", "/v1/batches/batch_1/cancel", "none"],
  ["POST", "/v1/filesystem", "all"],
])("%s %s counts tokens: %s", (method, path, rule) => {
  expect(countingRuleOf(method, path)).toBe(rule);
});
