import { describe, expect, test } from "bun:test";
import { findPathAndQuery, isHost, isPathWithoutV1, loggedPath, readTarget } from "../../../src/proxy/request/path.ts";

describe("readTarget", () => {
  const request = (method: string, headers: Record<string, string>): Request =>
    new Request("http://h/v1/chat//completions?a=%2F", { method, headers: { host: "h", ...headers } });

  test("keeps path and query as they came", () => {
    expect(readTarget(request("POST", {}))).toEqual({
      path: "/v1/chat//completions",
      pathAndQuery: "/v1/chat//completions?a=%2F",
    });
  });

  test.each([
    ["a malformed host", "GET", { host: "a b" }, "invalid_host"],
    ["two lengths", "POST", { "content-length": "5, 5" }, "invalid_request"],
    ["an unknown method", "PROPFIND", {}, "method_not_allowed"],
    ["a WebSocket", "GET", { upgrade: "WebSocket" }, "upgrade_not_supported"],
  ])("refuses %s", (_, method, headers, code) => {
    expect(() => readTarget(request(method, headers))).toThrow(code);
  });

  test.each([
    ["/chat/completions", "path_without_v1"],
    ["/api/keys", "not_found"],
    ["/v1", "not_found"],
    ["/v1/v1/messages?beta=true", "path_with_v1_twice"],
    ["/v1//v1/models", "path_with_v1_twice"],
    ["/v1/v1", "path_with_v1_twice"],
  ])("refuses a POST to %s with %s", (path, code) => {
    const target = new Request(`http://h${path}`, { method: "POST", headers: { host: "h" } });
    expect(() => readTarget(target)).toThrow(code);
  });

  test("takes no other name for a second /v1", () => {
    for (const path of ["/v1/v1beta/models", "/v1/a/v1/b", "/v1/v10"]) {
      expect(readTarget(new Request(`http://h${path}`, { headers: { host: "h" } })).path).toBe(path);
    }
  });

  test("ignores an offer of HTTP/2", () => {
    expect(readTarget(request("GET", { upgrade: "h2c" })).path).toBe("/v1/chat//completions");
  });
});

describe("loggedPath", () => {
  const logged = (path: string, key = "a secret"): string =>
    loggedPath(new Request(`http://h${path}`, { headers: { "x-api-key": key } }));

  test("has no query, whatever the Host", () => {
    const relative = { url: "/v1/x?key=secret", headers: new Headers() } as Request;
    expect([logged("/v1/x?key=secret"), loggedPath(relative)]).toEqual(["/v1/x", "/v1/x"]);
  });

  test.each([
    ["/v1/secret/models", "secret", "/v1/***/models"],
    ["/v1/a%2Bb/models", "a+b", "/v1/***/models"],
    ["/v1/3f2a0000000000000000000000009c1b/models", "other", "/v1/***/models"],
    [
      "/v1/responses/resp_3f2a0000000000000000000000009c1b",
      "other",
      "/v1/responses/resp_3f2a0000000000000000000000009c1b",
    ],
    ["/v1/..%2f3f2a0000000000000000000000009c1b", "other", "/v1/***"],
    ["/v1/a/..%252F3f2a0000000000000000000000009c1b", "other", "/v1/a/***"],
    ["/v1/models;key=3f2a0000000000000000000000009c1b", "other", "/v1/***"],
    ["/v1/models%20sk-company-0123456789", "sk-company-0123456789", "/v1/***"],
    ["/v1/models=sk-company%2d0123456789", "sk-company-0123456789", "/v1/***"],
    ["/v1/x/company/0123456789", "company/0123456789", "/***"],
    ["/v1/x/company%2F0123456789", "company/0123456789", "/v1/x/***"],
    ["/v1/chat/chatter", "chat", "/v1/***/chatter"],
    ["/v1/models", "v1", "/v1/models"],
    ["/v1/100%/models", "x", "/v1/100%/models"],
  ])("of %s with the key %s is %s", (path, key, expected) => expect(logged(path, key)).toBe(expected));
});

describe("findPathAndQuery", () => {
  test.each([
    ["http://h/v1/a?b=c", "/v1/a?b=c"],
    ["http://h:1/v1//a%2Fb/", "/v1//a%2Fb/"],
    ["https://[::1]:2/v1/a?u=http://x/y", "/v1/a?u=http://x/y"],
    ["http://h//v1/a", "/v1/a"],
    ["http://h///v1?a=//v1/", "/v1?a=//v1/"],
    ["http://h//v10/a", "//v10/a"],
    ["http://h/v1/models#x", "/v1/models"],
    ["http://h/v1/a?b=c#d?e", "/v1/a?b=c"],
    ["http://h/v1/a#b?c", "/v1/a"],
    ["http://h/v1/a%23b", "/v1/a%23b"],
  ])("splits %s", (url, target) => expect(findPathAndQuery(url)).toBe(target));

  test("finds none if the Host made the URL relative", () => expect(findPathAndQuery("/v1/a")).toBeUndefined());
});

describe("isHost", () => {
  test.each(["gw", "gate.example", "gate.example:8080", "my_host", "127.0.0.1:1", "[::1]", "[fe80::1]:80"])(
    "accepts %s",
    (host) => expect(isHost(host)).toBe(true),
  );
  test.each([null, "", "a b", "a:b:c", "[::1", "%00", "user@host", "a/b", "a\\b", "a:", "a:123456", "a:65536", "é"])(
    "rejects %p",
    (host) => expect(isHost(host)).toBe(false),
  );
});

describe("isPathWithoutV1", () => {
  const request = (method: string, path: string, headers = {}): Request =>
    new Request(`http://h${path}`, { method, headers });
  test.each([
    "/chat/completions",
    "/completions",
    "/embeddings",
    "/messages",
    "/messages/count_tokens",
    "/responses?x=1",
  ])("is true for a POST to %s", (path) => expect(isPathWithoutV1(request("POST", path))).toBe(true));
  test("is true for a GET of /models only with a credential, as a page of that name may exist", () => {
    expect(isPathWithoutV1(request("GET", "/models"))).toBe(false);
    expect(isPathWithoutV1(request("GET", "/models", { "x-api-key": "k" }))).toBe(true);
    expect(isPathWithoutV1(request("GET", "/models", { authorization: "Bearer k" }))).toBe(true);
  });
  test.each(["/", "/keys", "/api/login", "/v1/chat/completions", "/messagesboard"])(
    "is false for a POST to %s",
    (path) => expect(isPathWithoutV1(request("POST", path))).toBe(false),
  );
});
