import { expect, test } from "bun:test";
import { resultOfError, resultOfResponse } from "../../src/gpu-agent/post-result.ts";

const url = "https://gate.example.com/api/gpu-stats";

const resultOf = (status: number, text: string, headers = {}) =>
  resultOfResponse(url, status, new Headers(headers), text);
const failed = (reason: string) => ({ kind: "failed" as const, reason: expect.stringContaining(reason) });

test("only Tollgate's own response counts as accepted", () => {
  expect(resultOf(200, '{"ok":true}').kind).toBe("accepted");
  expect(resultOf(200, "<!doctype html><title>Welcome</title>")).toMatchObject({ kind: "failed" });
  expect(resultOf(200, '{"ok":false}').kind).toBe("failed");
  expect(resultOf(204, "").kind).toBe("failed");
});

test.each([
  [405, "", {}, "wrong address (405)"],
  [301, "", { location: "/elsewhere?token=1" }, "redirects (301) to https://gate.example.com/elsewhere"],
  [302, "", {}, "redirects (302) to nowhere"],
  [400, '{"error":"gpus must be an array"}', {}, "status 400: gpus must be an array"],
])("explains status %i to the operator", (status, text, headers, reason) => {
  const result = resultOf(status, text, headers);
  expect(result).toEqual(failed(reason));
  // The query of a redirect may hold a secret.
  expect(JSON.stringify(result)).not.toContain("token");
});

test.each([
  ['{"error":"This API key may not post GPU samples"}', "refused (403): This API key may not post GPU samples"],
  ["<html>", "refused (403): a server in between refuses it"],
])("a key that is refused with %s is told why", (text, reason) => {
  expect(resultOf(403, text)).toEqual({ kind: "key rejected", reason: `the API key is ${reason}` });
});

test.each([
  ["ENOTFOUND", "unknown host name"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"],
  ["CERT_HAS_EXPIRED", "the TLS certificate has expired"],
  ["CERT_NOT_YET_VALID", "the TLS certificate is not valid yet"],
  ["EHOSTUNREACH", "host unreachable"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate is not trusted"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate is for another host name"],
  ["EWEIRD", "EWEIRD"],
])("explains the error code %s to the operator", (code, reason) => {
  const result = resultOfError(Object.assign(new Error("a runtime's own sentence"), { code }));
  expect(result).toEqual(failed(reason));
  expect(JSON.stringify(result)).not.toContain("sentence");
});

test("explains a timeout to the operator", () => {
  expect(resultOfError("timeout")).toEqual({ kind: "failed", reason: "no response in time" });
});
