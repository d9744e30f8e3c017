import { describe, expect, test } from "bun:test";
import { findPathAndQuery, isHost, loggedPath, readTarget } from "../../../src/proxy/request/target.ts";

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
    ["an unknown method", "PROPFIND", {}, "method_not_allowed"],
    ["a WebSocket", "GET", { upgrade: "WebSocket" }, "upgrade_not_supported"],
  ])("refuses %s", (_, method, headers, code) => {
    expect(() => readTarget(request(method, headers))).toThrow(code);
  });

  test("ignores an offer of HTTP/2", () => {
    expect(readTarget(request("GET", { upgrade: "h2c" })).path).toBe("/v1/chat//completions");
  });
});

test("a logged path has no query, whatever the Host", () => {
  expect([loggedPath("http://h/v1/x?key=secret"), loggedPath("/v1/x?key=secret")]).toEqual(["/v1/x", "/v1/x"]);
});

describe("findPathAndQuery", () => {
  test.each([
    ["http://h/v1/a?b=c", "/v1/a?b=c"],
    ["http://h:1/v1//a%2Fb/", "/v1//a%2Fb/"],
    ["https://[::1]:2/v1/a?u=http://x/y", "/v1/a?u=http://x/y"],
  ])("splits %s", (url, target) => expect(findPathAndQuery(url)).toBe(target));

  test("finds none if the Host made the URL relative", () => expect(findPathAndQuery("/v1/a")).toBeUndefined());
});

describe("isHost", () => {
  test.each(["gw", "gate.example", "gate.example:8080", "my_host", "127.0.0.1:1", "[::1]", "[fe80::1]:80"])(
    "accepts %s",
    (host) => expect(isHost(host)).toBe(true),
  );
  test.each([null, "", "a b", "a:b:c", "[::1", "%00", "user@host", "a/b", "a\\b", "a:", "a:123456", "é"])(
    "rejects %p",
    (host) => expect(isHost(host)).toBe(false),
  );
});
