import { describe, expect, test } from "bun:test";
import { findCredential } from "../../src/proxy/gate.ts";

describe("findCredential", () => {
  test.each<[Record<string, string>, string | undefined]>([
    [{ authorization: "Bearer k1" }, "k1"],
    [{ authorization: "bearer k1" }, "k1"],
    [{ authorization: "BEARER  k1 " }, "k1"],
    [{ "x-api-key": "k2" }, "k2"],
    [{ authorization: "Bearer k1", "x-api-key": "k2" }, "k1"],
    [{ authorization: "Basic dTpw", "x-api-key": "k2" }, "k2"],
    [{ authorization: "Bearer" }, undefined],
    [{ authorization: "Bearer a b" }, undefined],
    [{ authorization: "k1" }, undefined],
    [{ "x-api-key": "" }, undefined],
    [{}, undefined],
  ])("reads %p as %p", (headers, key) => expect(findCredential(new Headers(headers))).toBe(key));
});
