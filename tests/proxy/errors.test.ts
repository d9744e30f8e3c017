import { describe, expect, test } from "bun:test";
import { type ErrorCode, errorResponse } from "../../src/proxy/errors.ts";

describe("an error response", () => {
  const allMethods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
  const rows: [code: ErrorCode, status: number, type: string, headers: Record<string, string>][] = [
    ["invalid_host", 400, "invalid_request_error", {}],
    ["invalid_request", 400, "invalid_request_error", {}],
    ["invalid_path", 400, "invalid_request_error", {}],
    ["invalid_api_key", 401, "authentication_error", { "www-authenticate": "Bearer", "x-should-retry": "false" }],
    ["not_found", 404, "not_found_error", {}],
    ["method_not_allowed", 405, "invalid_request_error", { allow: allMethods }],
    ["request_timeout", 408, "timeout_error", {}],
    ["invalid_json", 400, "invalid_request_error", {}],
    ["path_without_v1", 404, "not_found_error", {}],
    ["too_many_bytes_held", 429, "rate_limit_error", { "retry-after": "2" }],
    ["unsupported_body", 415, "invalid_request_error", { "accept-encoding": "gzip, deflate, br, zstd" }],
    ["body_too_large", 413, "invalid_request_error", {}],
    ["upgrade_not_supported", 426, "invalid_request_error", { upgrade: "HTTP/1.1" }],
    ["internal", 500, "api_error", {}],
    ["upstream_unreachable", 502, "api_error", {}],
    ["shutting_down", 503, "api_error", { "retry-after": "1" }],
    ["storage_unavailable", 503, "api_error", { "retry-after": "1" }],
    ["model_list_unreadable", 502, "api_error", { "x-should-retry": "false" }],
    ["upstream_timeout", 504, "timeout_error", { "x-should-retry": "false" }],
  ];
  test.each(rows)("of %s is a %i that both families of SDKs read", async (code, status, type, headers) => {
    const response = errorResponse(code);
    expect(response.status).toBe(status);
    const {
      "content-type": contentType,
      "x-content-type-options": sniffing,
      ...others
    } = Object.fromEntries(response.headers);
    expect(sniffing).toBe("nosniff");
    expect(contentType).toStartWith("application/json");
    expect(others).toEqual(headers);
    const message = expect.stringMatching(/^[A-Z].*\.$/);
    expect(await response.json()).toEqual({
      type: "error",
      error: { type, message, param: null, code: code.startsWith("path_with") ? "not_found" : code },
    });
  });
});
