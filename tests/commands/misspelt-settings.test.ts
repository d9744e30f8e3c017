import { expect, test } from "bun:test";
import { variableNames } from "../../src/config/config.ts";
import { findMisspeltSettings } from "../../src/commands/misspelt-settings.ts";

test.each([
  ["PROXY_UPSTRAEM_URL", "PROXY_UPSTREAM_URL"],
  ["PROXY_UPSTREAM", "PROXY_UPSTREAM_URL"],
  ["PROXY_STREAM_TIMEOUT", "PROXY_STREAM_READ_TIMEOUT"],
  ["proxy_upstream_url", "PROXY_UPSTREAM_URL"],
  ["ADMIN_PASWORD", "ADMIN_PASSWORD"],
  ["ADMIN_PROT", "ADMIN_PORT"],
  ["MAX_BODY_BYTE", "MAX_BODY_BYTES"],
  ["DATADIR", "DATA_DIR"],
  ["DATABASE_URI", "DATABASE_URL"],
  ["SECRETKEY", "SECRET_KEY"],
  ["TRUST_PROXIES", undefined],
  ["HTTP_PROXY", undefined],
  ["PROXY_HOST", undefined],
  ["PROXY_PORT", undefined],
  ["ADMIN_EMAIL", undefined],
  ["HOSTNAME", undefined],
  ["HOSTS", undefined],
  ["PORTS", undefined],
  ["PATH", undefined],
  ["HOME", undefined],
  ["PGDATABASE", undefined],
  ["LOGNAME", undefined],
  ["MAX_OLD_SPACE_SIZE", undefined],
])("%s is taken for a misspelt %p", (given, meant) => {
  expect(findMisspeltSettings({ [given]: "x", PATH: "/bin" })).toEqual(meant === undefined ? [] : [{ given, meant }]);
});

test("the settings themselves are never taken for misspelt ones", () => {
  expect(findMisspeltSettings(Object.fromEntries(variableNames.map((name) => [name, "x"])))).toEqual([]);
});
