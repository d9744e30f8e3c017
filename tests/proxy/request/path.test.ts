import { describe, expect, test } from "bun:test";
import { matchesGlob } from "../../../src/domain/keys.ts";
import { guardedPatterns, loggedPath } from "../../../src/proxy/request/path.ts";

describe("guardedPatterns", () => {
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
