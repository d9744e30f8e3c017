import { describe, expect, test } from "bun:test";
import { findPathAndQuery, guardedPatterns, hasDotDot, isHost } from "../../../src/proxy/request/path.ts";

describe("hasDotDot", () => {
  test.each([
    "..",
    "a..b",
    "%2e%2e",
    "%2E.",
    ".%2e",
    "%252e%252e",
    "%25252e%2525252e",
    "%25%32%65%25%32%65",
    "%%32%65%%32%65",
    "a\\..\\b",
    "..%2fetc",
    "%2e%2e%5c",
    "%2525252525252525252e%2525252525252525252e",
  ])("finds it in %s", (segment) => expect(hasDotDot(segment)).toBe(true));

  test.each(["", ".", "chat", "gpt-4.1", "a.b.c", "%2e", "%252e", "100%", "%zz", "a%20b", "%c0%ae%c0%ae", "．．"])(
    "finds none in %s",
    (segment) => expect(hasDotDot(segment)).toBe(false),
  );

  test("gives up on a segment that is encoded more often than anybody honest does", () => {
    expect(hasDotDot(`%${"25".repeat(7000)}41`)).toBe(true);
  });
});

describe("guardedPatterns", () => {
  test("covers 64 segments, and any two empty ones among 8", () => {
    const patterns = new Set(guardedPatterns());
    const path = (segments: number): string =>
      `/v1/${Array.from({ length: segments }, (_, index) => `:s${index}`).join("/")}`;
    for (let segments = 1; segments <= 64; segments++) expect(patterns.has(path(segments))).toBe(true);
    expect(patterns.has(path(65))).toBe(false);
    for (const pattern of ["/v1/", "/v1//:s1", "/v1/:s0/", "/v1/:s0//:s2/", "/v1///:s2", `${path(6)}//`]) {
      expect(patterns.has(pattern)).toBe(true);
    }
    expect(patterns.size).toBe(guardedPatterns().length);
  });

  test("are few, because the server keeps each of them for every method", () => {
    expect(guardedPatterns().length).toBeLessThan(200);
  });
});

describe("findPathAndQuery", () => {
  test.each([
    ["http://h/v1/a?b=c", "/v1/a?b=c"],
    ["http://h:1/v1//a%2Fb/", "/v1//a%2Fb/"],
    ["https://[::1]:2/v1/a?u=http://x/y", "/v1/a?u=http://x/y"],
  ])("takes %s apart", (url, target) => expect(findPathAndQuery(url)).toBe(target));

  test("has none where the Host made the URL relative", () => expect(findPathAndQuery("/v1/a")).toBeUndefined());
});

describe("isHost", () => {
  test.each(["gw", "gate.example", "gate.example:8080", "my_host", "127.0.0.1:1", "[::1]", "[fe80::1]:80"])(
    "takes %s for one",
    (host) => expect(isHost(host)).toBe(true),
  );
  test.each([null, "", "a b", "a:b:c", "[::1", "%00", "user@host", "a/b", "a\\b", "a:", "a:123456", "é"])(
    "does not take %p for one",
    (host) => expect(isHost(host)).toBe(false),
  );
});
