import { describe, expect, test } from "bun:test";
import { matchesGlob } from "../../../src/domain/keys.ts";
import { guardedPatterns, hasDotDot } from "../../../src/proxy/request/path.ts";

describe("hasDotDot", () => {
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
