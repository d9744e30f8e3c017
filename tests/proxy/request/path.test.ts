import { describe, expect, test } from "bun:test";
import { guardedPatterns, guardPaths, hasDotDot, matchesGlob } from "../../../src/proxy/request/path.ts";

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
    "%u002e%U002E",
    "%25u002e.",
    "%%75002e.",
    "%%32%65%%32%65",
    "a\\..\\b",
    "..%2fetc",
    "%2e%2e%5c",
    "%2525252525252525252e%2525252525252525252e",
  ])("finds it in %s", (segment) => expect(hasDotDot(segment)).toBe(true));

  test.each([
    "",
    ".",
    "chat",
    "gpt-4.1",
    "a.b.c",
    "%2e",
    "%252e",
    "100%",
    "%zz",
    "a%20b",
    "%u002e",
    "%u02e%u02e",
    "%uff0e%uff0e",
    "%c0%ae%c0%ae",
    "．．",
  ])("finds none in %s", (segment) => expect(hasDotDot(segment)).toBe(false));

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

  test("stays below 300 patterns, because the server keeps each of them for every method", () => {
    expect(guardedPatterns().length).toBeLessThan(300);
  });
});

describe("guardPaths", () => {
  const respondWith = (text: string) => () => new Response(text);
  const { routes, fetch } = guardPaths({
    handle: respondWith("passed"),
    others: respondWith("not below /v1/"),
    refuse: respondWith("refused"),
  });

  /** The outcome of a native route as Bun would call it with these parameters. */
  const outcome = async (pattern: string, params: Record<string, string>): Promise<string | undefined> => {
    const request = Object.assign(new Request("http://h/"), { params, cookies: new Map() });
    return (await routes[pattern]?.(request as unknown as Bun.BunRequest))?.text();
  };

  test("looks at every segment", async () => {
    expect(await outcome("/v1/:s0/:s1", { s0: "chat", s1: "completions" })).toBe("passed");
    expect(await outcome("/v1/:s0/:s1", { s0: "chat", s1: "%2e%2e" })).toBe("refused");
    expect(await outcome("/v1/:s0/:s1", { s0: "..", s1: "x" })).toBe("refused");
  });

  test("sees `..` behind a backslash, and leaves other first segments alone", async () => {
    expect(await outcome("/:first", { first: "v1\\..\\x" })).toBe("refused");
    expect(await outcome("/:first", { first: "v1\\x" })).toBe("not below /v1/");
    expect(await outcome("/:first", { first: "a..b" })).toBe("not below /v1/");
  });

  test("refuses what no pattern matches, and what was only normalised into /v1/", async () => {
    expect(await outcome("/v1/*", {})).toBe("refused");
    expect(await (await fetch(new Request("http://h/v1/x"))).text()).toBe("refused");
    expect(await (await fetch(new Request("http://h/v10/x"))).text()).toBe("not below /v1/");
    expect(await (await fetch(new Request("http://h/api/keys"))).text()).toBe("not below /v1/");
  });
});

describe("matchesGlob", () => {
  test.each([
    ["/v1/*", "/v1/", true],
    ["/v1/*", "/v1", false],
    ["/v1/files*", "/v1/files/a/b", true],
    ["/v1/*/content", "/v1/files/a/content", true],
    ["/v1/*/content", "/v1/files/a/contents", false],
    ["/v1/a*b*c", "/v1/axbxbxc", true],
    ["/v1/a*b*c", "/v1/acb", false],
    ["/v1/models", "/v1/models", true],
    ["/v1/models", "/v1/models/x", false],
    ["/v1/a**", "/v1/a", true],
    ["/v1/a.c", "/v1/abc", false],
  ])("%s and %s: %p", (glob, path, isMatch) => {
    expect(matchesGlob(glob, path)).toBe(isMatch);
  });

  test("with many stars takes no longer than the product of the lengths", () => {
    expect(matchesGlob(`/v1/${"*a".repeat(120)}b`, `/v1/${"a".repeat(16_000)}`)).toBe(false);
  });
});
