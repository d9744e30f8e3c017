import { expect, test } from "bun:test";
import { variableNames } from "../../src/config/config.ts";
import { reportSettings } from "../../src/config/settings-report.ts";

const noFile = (): string => {
  throw new Error("there is no file");
};
const find = (name: string, environment: Record<string, string>, readText = noFile) =>
  reportSettings(environment, readText).find((setting) => setting.name === name);

test("every setting is reported, with its default if it is unset or empty", () => {
  expect(reportSettings({}, noFile).map(({ name }) => name)).toEqual([...variableNames]);
  expect(find("PORT", { PORT: "" })).toMatchObject({ value: "8080", isSet: false, origin: "default" });
  expect(find("PROXY_VENDOR_PREFIXES", {})?.value).toBe("anthropic,claude");
  expect(find("PROXY_ALIAS_MODEL", {})?.value).toBeNull();
});

test("the value of a secret is not reported", () => {
  const environment = {
    SECRET_KEY: "very secret",
    ADMIN_PASSWORD: "very secret",
    DATABASE_URL: "postgres://very:secret@db/x",
    METRICS_TOKEN: "very secret",
    PROXY_UPSTREAM_API_KEY: "very secret",
  };
  const reported = reportSettings(environment, noFile);
  expect(JSON.stringify(reported)).not.toContain("secret@");
  expect(JSON.stringify(reported)).not.toContain("very secret");
  expect(reported.filter(({ isSet, isSecret }) => isSet && isSecret)).toHaveLength(5);
});

test("a value that stands in .env is reported as from there, unless the environment overrides it", () => {
  const text = 'PORT=1\nexport HOST = "0.0.0.0"\n# LOG_LEVEL=debug\r\nLOG_LEVEL=warn\r\n';
  const readText = (file: string): string => (file === ".env" ? text : noFile());
  const environment = { PORT: "1", HOST: "0.0.0.0", LOG_LEVEL: "error" };
  const origins = ["PORT", "HOST", "LOG_LEVEL"].map((name) => find(name, environment, readText as never)?.origin);
  expect(origins).toEqual([".env", ".env", "environment"]);
});

test("a setting that MODELS_FILE replaces has no default beside it", () => {
  const environment = { MODELS_FILE: "models.yaml" };
  expect(find("PROXY_UPSTREAM_URL", environment)).toMatchObject({ value: null, isSet: false });
  expect(find("MODELS_FILE", environment)).toMatchObject({ value: "models.yaml", origin: "environment" });
  expect(find("PROXY_HAN_GUARD", environment)?.value).toBe("on");
});
