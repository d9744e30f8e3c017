import { expect, test } from "bun:test";
import { join } from "node:path";
import { causeOf, provesUnsent } from "../../../src/proxy/upstream/abort-reason.ts";

const errorWith = (code: unknown): Error => Object.assign(new Error("at 10.0.0.7"), { code });

test.each([
  ["ECONNREFUSED", "ECONNREFUSED"],
  ["ENOTFOUND", "ENOTFOUND"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "DEPTH_ZERO_SELF_SIGNED_CERT"],
  ["Malformed_HTTP_Response", "not_http"],
  ["InvalidHTTPResponse", "not_http"],
  [23, "unknown"],
  [undefined, "unknown"],
])("the cause of an error with the code %p is %s", (code, cause) => {
  expect(causeOf(errorWith(code))).toBe(cause);
});

test.each([
  ["ECONNREFUSED", true],
  ["ENOTFOUND", true],
  ["EHOSTUNREACH", true],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", true],
  ["ERR_TLS_CERT_ALTNAME_INVALID", true],
  ["CERT_HAS_EXPIRED", true],
  ["ECONNRESET", false],
  ["EPROTO", false],
  ["not_http", false],
  ["timeout", false],
  ["unknown", false],
  ["EMFILE", false],
])("%s proves that nothing was sent: %p", (cause, expected) => {
  expect(provesUnsent(cause)).toBe(expected);
});

test("the cause of a timeout and of what is not an error", () => {
  expect(causeOf(new DOMException("late", "TimeoutError"))).toBe("timeout");
  expect(causeOf("at 10.0.0.7")).toBe("unknown");
});

test("a name that is not found because no descriptor is free has EMFILE as its cause", () => {
  const module = join(import.meta.dir, "../../../src/proxy/upstream/abort-reason.ts");
  const script = `
    const { openSync } = require("node:fs");
    const { causeOf } = await import(${JSON.stringify(module)});
    try { for (;;) openSync("/dev/null"); } catch {}
    console.log(causeOf(Object.assign(new Error(), { code: "ENOTFOUND" })));`;
  const { stdout } = Bun.spawnSync(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, "-e", script]);
  expect(stdout.toString()).toBe("EMFILE\n");
});
