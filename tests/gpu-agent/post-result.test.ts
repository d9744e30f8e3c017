import { expect, test } from "bun:test";
import { answerOf, failureOf } from "../../src/gpu-agent/post-result.ts";

const url = "https://gate.example.com/api/gpu-stats";

const answer = (status: number, text: string, headers = {}) => answerOf(url, status, new Headers(headers), text);

test("only Tollgate's own answer counts as accepted", () => {
  expect(answer(200, '{"ok":true}').kind).toBe("accepted");
  expect(answer(200, "<!doctype html><title>Welcome</title>")).toMatchObject({ kind: "failed" });
  expect(answer(200, '{"ok":false}').kind).toBe("failed");
  expect(answer(204, "").kind).toBe("failed");
});

test.each([
  [401, '{"error":"Invalid API key"}', {}, "refuses the key"],
  [404, '{"error":"Not found"}', {}, "wrong address"],
  [405, "", {}, "wrong address"],
  [200, "<html>", {}, "wrong address"],
  [301, "", { location: "/elsewhere?token=1" }, "redirects (301) to https://gate.example.com/elsewhere"],
  [302, "", {}, "redirects (302) to nowhere"],
  [400, '{"error":"gpus must be an array"}', {}, "answered 400: gpus must be an array"],
  [502, "<html>Bad gateway</html>", {}, "answered 502"],
])("status %i is told in the operator's words", (status, text, headers, words) => {
  expect(answer(status, text, headers).words).toContain(words);
});

test("a redirect's query is not repeated", () => {
  expect(answer(301, "", { location: "/elsewhere?token=1" }).words).not.toContain("token");
});

test.each([
  ["ConnectionRefused", "nothing listens there"],
  ["ENOTFOUND", "host name is not known"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "certificate is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)"],
  ["CERT_HAS_EXPIRED", "certificate is not trusted"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "certificate is not trusted"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "certificate is for another host name"],
  ["EPROTO", "does not speak TLS"],
  ["EWEIRD", "EWEIRD"],
])("the code %s is told in the operator's words", (code, words) => {
  const failure = failureOf(url, Object.assign(new Error("a runtime's own sentence"), { code }));
  expect(failure.words).toContain(words);
  expect(failure.words).not.toContain("sentence");
});

test("a deadline that passed is told", () => {
  expect(failureOf(url, "timeout").words).toContain("no answer in time");
});
