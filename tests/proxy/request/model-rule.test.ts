import { expect, test } from "bun:test";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { isModelAllowed, requireAllowedModel, type RequestedModel } from "../../../src/proxy/request/model-rule.ts";

const allowed = ["gpt-4*", "qwen", "/mnt/qwen"];

const notOne =
  "With this API key, the body must name exactly one model; GET /v1/models lists those that the key may use.";

const outcome = (requested: Partial<RequestedModel>): string => {
  try {
    const model = { asked: "QWEN", name: "Qwen" };
    const defaults = { path: "/v1/x", inQuery: [], hasBody: true, model };
    requireAllowedModel(allowed, { ...defaults, ...requested });
    return "allowed";
  } catch (error) {
    return error instanceof ProxyError ? (error.details?.message ?? error.code) : String(error);
  }
};

test.each([
  ["Qwen", true],
  ["QWEN", true],
  ["qwen2", false],
  ["GPT-4", true],
  ["gpt-4o", true],
  ["gpt-3", false],
  ["gpt-4*", true],
  ["", false],
])("the model %p is allowed: %p", (name, isAllowed) => {
  expect(isModelAllowed(allowed, name)).toBe(isAllowed);
});

test.each<[string, Partial<RequestedModel>, string]>([
  ["the name asked for is allowed", { model: { asked: "gpt-4", name: "served" } }, "allowed"],
  ["the model's name is allowed", { model: { asked: "claude-x", name: "Qwen" } }, "allowed"],
  ["neither is", { model: { asked: "claude-x", name: "served" } }, "model_not_allowed"],
  ["the body names none", { model: undefined }, notOne],
  ["there is no body", { hasBody: false, model: undefined }, "allowed"],
  ["the path names one that is allowed", { path: "/v1/models/gpt%2d4", hasBody: false }, "allowed"],
  ["the path names another", { path: "/v1/models/secret", hasBody: false }, "model_not_allowed"],
  [
    "the path names another after an empty segment",
    { path: "/v1/models//secret", hasBody: false },
    "model_not_allowed",
  ],
  ["the path names one whose id is a path", { path: "/v1/models//mnt/qwen", hasBody: false }, "allowed"],
  ["the path names one without its slash", { path: "/v1/models/mnt/qwen", hasBody: false }, "model_not_allowed"],
  ["the query names one that is allowed", { inQuery: ["gpt-4"] }, "allowed"],
  ["the query names another too", { inQuery: ["gpt-4", "secret"] }, "model_not_allowed"],
  ["the query of a request without a body does", { inQuery: ["secret"], hasBody: false }, "model_not_allowed"],
  ["the path is malformed", { path: "/v1/models/%zz", hasBody: false }, "model_not_allowed"],
])("a request is judged if %s", (_, requested, expected) => {
  expect(outcome(requested)).toBe(expected);
});
