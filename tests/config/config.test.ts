import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { createTempFolder } from "../support/temp-folder.ts";
import { ConfigError, type Environment, readConfig } from "../../src/config/config.ts";
import type { ClientRules } from "../../src/domain/models.ts";

const problemsOf = (environment: Environment): readonly string[] => {
  try {
    readConfig(environment, false);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
};

describe("readConfig", () => {
  test("has defaults", () => {
    const config = readConfig({}, false);
    expect(config.upstream.baseUrl).toBe("http://127.0.0.1:8000");
    expect(config.upstream.streamReadTimeoutMs).toBe(1_200_000);
    expect(config.upstream.nonStreamReadTimeoutMs).toBe(1_200_000);
    expect(config.rewrite).toEqual({
      servedModel: undefined,
      reasoningModel: undefined,
      rewriteUnknownModels: false,
      vendorPrefixes: ["anthropic", "claude"],
      hanGuard: true,
      maxContextTokens: 202_752,
      maxOutputTokens: 16_384,
      forceStreamUsage: "off",
      clientRules: [],
    });
    expect([config.listen.host, config.listen.port, config.listen.adminPort]).toEqual(["127.0.0.1", 8080, undefined]);
    expect([config.storage.dataDir, config.processes, config.listen.trustedHops]).toEqual(["./data", 1, 0]);
    expect(config.admin).toEqual({
      username: "admin",
      password: undefined,
      secretKey: undefined,
      metricsToken: undefined,
    });
    expect([config.proxy.sseKeepaliveMs, config.shutdownGraceMs, config.proxy.corsOrigins]).toEqual([
      0,
      30_000,
      undefined,
    ]);
  });

  test("treats an empty value as unset", () => {
    const empty = { PORT: "", SECRET_KEY: "", PROXY_ALIAS_MODEL: "", ADMIN_PORT: "", PROXY_CORS_ORIGINS: "" };
    expect(readConfig(empty, false)).toEqual(readConfig({}, false));
  });

  test.each([
    ["http://127.0.0.1:8000", "http://127.0.0.1:8000"],
    ["http://127.0.0.1:8000/", "http://127.0.0.1:8000"],
    ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"],
    ["http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"],
    ["https://models.example.com/team-a/v1/", "https://models.example.com/team-a"],
    ["https://models.example.com/v1beta", "https://models.example.com/v1beta"],
  ])("reads the upstream %s as %s", (given, baseUrl) => {
    expect(readConfig({ PROXY_UPSTREAM_URL: given }, false).upstream.baseUrl).toBe(baseUrl);
  });

  test("reads decimal seconds, lists, switches and origins", () => {
    const config = readConfig(
      {
        PROXY_STREAM_READ_TIMEOUT: "0.25",
        PROXY_SSE_KEEPALIVE: "1.5",
        PROXY_VENDOR_PREFIXES: " acme, other ,",
        PROXY_ALIAS_REWRITE_ALL: "ON",
        PROXY_CORS_ORIGINS: "https://chat.example.com, http://localhost:3000",
        PROCESSES: "auto",
        LOG_FORMAT: "pretty",
      },
      false,
    );
    expect(config.upstream.streamReadTimeoutMs).toBe(250);
    expect(config.proxy.sseKeepaliveMs).toBe(1500);
    expect(config.rewrite.vendorPrefixes).toEqual(["acme", "other"]);
    expect(config.rewrite.rewriteUnknownModels).toBe(true);
    expect(config.proxy.corsOrigins).toEqual(["https://chat.example.com", "http://localhost:3000"]);
    expect(config.processes).toBe("auto");
    expect(config.log.format).toBe("pretty");
  });

  test.each([
    ["off", []],
    ["AUTO", "auto"],
    [" drop_billing_line , system_turns_to_user,drop_billing_line", ["drop_billing_line", "system_turns_to_user"]],
  ])("reads the client rules %s", (given, rules) => {
    expect(readConfig({ CLIENT_RULES: given }, false).rewrite.clientRules).toEqual(rules as ClientRules);
  });

  test.each(["chrome-extension://abcdefghijklmnop", "app://obsidian.md", "tauri://localhost", "http://[::1]:3000"])(
    "reads the origin %s, which a browser or a browser-based app sends",
    (origin) => expect(readConfig({ PROXY_CORS_ORIGINS: origin }, false).proxy.corsOrigins).toEqual([origin]),
  );

  test("logs in pretty format on a terminal and in JSON otherwise", () => {
    expect(readConfig({}, true).log.format).toBe("pretty");
    expect(readConfig({}, false).log.format).toBe("json");
  });

  test.each([
    ["PROXY_UPSTREAM_URL", "ftp://x"],
    ["PROXY_UPSTREAM_URL", "localhost:8000"],
    ["PROXY_UPSTREAM_URL", "http://x/?a=1"],
    ["PROXY_UPSTREAM_URL", "http://x/#a"],
    ["PROXY_UPSTREAM_API_KEY", "with space"],
    ["PROXY_ALIAS_REWRITE_ALL", "yes"],
    ["PROXY_HAN_GUARD", "1"],
    ["PROXY_FORCE_STREAM_USAGE", "always"],
    ["CLIENT_RULES", "auto,drop_billing_line"],
    ["CLIENT_RULES", "drop_billing"],
    ["CLIENT_RULES", ","],
    ["PROXY_SSE_KEEPALIVE", "-1"],
    ["PUBLIC_URL", "gate.example.com"],
    ["PUBLIC_URL", "https://gate.example.com/v1"],
    ["ADMIN_URL", "https://gate.example.com/"],
    ["ADMIN_URL", "http://gate.example.com"],
    ["ADMIN_URL", "http://localhost.example.com"],
    ["OIDC_ISSUER", "http://id.example.com"],
    ["OIDC_ISSUER", "https://user@id.example.com"],
    ["OIDC_ISSUER", "https://id.example.com/?a=1"],
    ["OIDC_CLIENT_SECRET_FILE", "/nowhere/secret"],
    ["OIDC_SCOPES", "profile email"],
    ["OIDC_ONLY", "1"],
    ["OIDC_DEFAULT_ROLE", "admin"],
    ["OIDC_CHECK_SECONDS", "0"],
    ["MEMBER_KEYS_DAYS", "0"],
    ["PROXY_CORS_ORIGINS", "chat.example.com"],
    ["PROXY_CORS_ORIGINS", "https://chat.example.com/path"],
    ["PROXY_CORS_ORIGINS", "https://Chat.example.com"],
    ["PROXY_CORS_ORIGINS", "https://a.example, *"],
    ["PROXY_CORS_ORIGINS", "app://obsidian.md/"],
    ["PROXY_CORS_ORIGINS", "file:///"],
    ["PROXY_CORS_ORIGINS", "null"],
    ["PROXY_CORS_ORIGINS", ","],
    ["PROXY_STREAM_READ_TIMEOUT", "0"],
    ["PROXY_STREAM_READ_TIMEOUT", "1e3"],
    ["PROXY_NONSTREAM_READ_TIMEOUT", "ten"],
    ["MAX_CONTEXT_TOKENS", "0"],
    ["MAX_OUTPUT_TOKENS", "1.5"],
    ["HOST", "a b"],
    ["PORT", "65536"],
    ["PORT", "-1"],
    ["ADMIN_PORT", "http"],
    ["DATABASE_URL", "mysql://x"],
    ["BACKUP_AT", "24:00"],
    ["BACKUP_AT", "3:30"],
    ["BACKUP_KEEP", "0"],
    ["PROCESSES", "0"],
    ["SECRET_KEY", "fifteen-letters"],
    ["SECRET_KEY", "x".repeat(64)],
    ["ADMIN_PASSWORD", "seven77"],
    ["ADMIN_HOST", "a/b"],
    ["TRUST_PROXY", "true"],
    ["SHUTDOWN_GRACE", "soon"],
    ["LOG_LEVEL", "loud"],
    ["LOG_FORMAT", "xml"],
  ])("rejects %s=%s in one line with its name and the allowed values", (name, value) => {
    const problems = problemsOf({ [name]: value, ...(name === "DATABASE_URL" && { SECRET_KEY: "0123456789abcdef" }) });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`${name}: `);
    expect(problems[0]).toContain("is not allowed; use ");
    expect(problems[0]).not.toContain("\n");
  });

  test.each([
    ["PROXY_STREAM_READ_TIMEOUT", "2000000", "2000000.1"],
    ["PROXY_NONSTREAM_READ_TIMEOUT", "0.001", "0.0"],
    ["PROXY_SSE_KEEPALIVE", "0", "-0"],
    ["MAX_CONTEXT_TOKENS", "1", "00"],
    ["MAX_OUTPUT_TOKENS", "1000000000", "1000000001"],
    ["PORT", "65535", "65535 "],
    ["ADMIN_PORT", "1", "0x1"],
    ["PROCESSES", "256", "257"],
    ["TRUST_PROXY", "100", "101"],
    ["SHUTDOWN_GRACE", "0", "Infinity"],
    ["SECRET_KEY", "sixteen-letters!", "sixteen-letters"],
    ["SECRET_KEY", "0123456701234567", "0123456001234560"],
    ["ADMIN_PASSWORD", "12345678", "1234567"],
    ["ADMIN_PASSWORD", "비밀번호여덟글자", "👍👍👍👍👍👍👍"],
    ["PROXY_ALIAS_REWRITE_ALL", "off", " off"],
  ])("%s: accepts %s and rejects %j", (name, last, tooFar) => {
    expect(problemsOf({ [name]: last })).toEqual([]);
    expect(problemsOf({ [name]: tooFar })).toHaveLength(1);
  });

  test("disables metrics by key by default", () => {
    expect(readConfig({ METRICS_PER_KEY: "on" }, false).metrics.perKey).toBe(true);
    expect(readConfig({}, false).metrics.perKey).toBe(false);
  });

  test("lists all problems", () => {
    const problems = problemsOf({ PORT: "x", TRUST_PROXY: "y", LOG_LEVEL: "z" });
    expect(problems.map((problem) => problem.split(":")[0])).toEqual(["PORT", "TRUST_PROXY", "LOG_LEVEL"]);
  });

  test.each([
    "SECRET_KEY",
    "ADMIN_PASSWORD",
    "PROXY_UPSTREAM_API_KEY",
    "METRICS_TOKEN",
    "DATABASE_URL",
    "OIDC_CLIENT_SECRET",
  ])("never shows the value of an invalid %s", (name) => {
    const problems = problemsOf({ [name]: "hu sh" });
    expect(problems.join()).toContain(name);
    expect(problems.join()).not.toContain("hu sh");
  });

  test("never shows a password in an address", () => {
    const problems = problemsOf({ PROXY_UPSTREAM_URL: "http://user:hush@backend" });
    expect(problems).toHaveLength(1);
    expect(problems.join()).not.toContain("hush");
  });

  test.each([
    [{}, "127.0.0.1"],
    [{ HOST: "0.0.0.0" }, "0.0.0.0"],
    [{ HOST: "0.0.0.0", ADMIN_PORT: "9000" }, "127.0.0.1"],
    [{ HOST: "gate.internal", ADMIN_PORT: "9000" }, "127.0.0.1"],
    [{ HOST: "::", ADMIN_PORT: "9000" }, "127.0.0.1"],
    [{ HOST: "127.0.0.2", ADMIN_PORT: "9000" }, "127.0.0.2"],
    [{ HOST: "::1", ADMIN_PORT: "9000" }, "::1"],
    [{ HOST: "localhost", ADMIN_PORT: "9000" }, "localhost"],
    [{ HOST: "127.0.0.1.example.com", ADMIN_PORT: "9000" }, "127.0.0.1"],
    [{ ADMIN_HOST: "10.0.0.7", ADMIN_PORT: "9000" }, "10.0.0.7"],
    [{ ADMIN_HOST: "", ADMIN_PORT: "9000", HOST: "0.0.0.0" }, "127.0.0.1"],
  ])("with %j, the admin side listens on %s", (environment, host) => {
    expect(readConfig(environment, false).listen.adminHost).toBe(host);
  });

  test("rejects ADMIN_HOST without ADMIN_PORT", () => {
    expect(problemsOf({ ADMIN_HOST: "10.0.0.7" })).toEqual([
      "ADMIN_HOST: has no effect without ADMIN_PORT; set both or neither",
    ]);
  });

  test("rejects the same port twice, DATABASE_URL without SECRET_KEY, and BACKUP_DIR with it", () => {
    expect(problemsOf({ PORT: "9000", ADMIN_PORT: "9000" }).join()).toContain("ADMIN_PORT");
    expect(problemsOf({ PORT: "0", ADMIN_PORT: "0" })).toEqual([]);
    expect(problemsOf({ DATABASE_URL: "postgres://db/tollgate" }).join()).toContain("SECRET_KEY");
    const both = { DATABASE_URL: "postgres://db/tollgate", SECRET_KEY: "0123456789abcdef", BACKUP_DIR: "/backups" };
    expect(problemsOf(both)).toEqual([expect.stringMatching(/^BACKUP_DIR: .*pg_dump/)]);
  });

  test.each([
    ["postgres://db/d", true],
    ["postgresql://u:p,q@db:5432/d?sslmode=require", true],
    ["postgres:///d?host=/run/postgresql,x", true],
    ["postgres://one,two/d", false],
    ["postgres://u:p@one:1,two:2/d", false],
    ["mysql://db/d", false],
  ])("takes %s as DATABASE_URL: %p", (url, isTaken) => {
    const problems = problemsOf({ DATABASE_URL: url, SECRET_KEY: "0123456789abcdef" });
    expect(problems).toEqual(
      isTaken ? [] : ["DATABASE_URL: its value is not allowed; use a postgres:// address with one host"],
    );
  });
});

describe("OpenID Connect", () => {
  const signIn = {
    ADMIN_URL: "https://gate.example.com",
    OIDC_ISSUER: "https://id.example.com/realms/one",
    OIDC_CLIENT_ID: "tollgate",
    OIDC_CLIENT_SECRET: "hush-hush",
  };

  test("is off unless an issuer is set, and reads its secret from a file too", async () => {
    using folder = createTempFolder();
    await Bun.write(folder.file("secret"), "from-the-file\n");
    expect(readConfig({}, false).signIn).toBeUndefined();
    expect(readConfig({ ADMIN_URL: signIn.ADMIN_URL }, false).signIn).toBeUndefined();
    const { OIDC_CLIENT_SECRET: _secret, ...others } = signIn;
    const settings = { ...others, OIDC_CLIENT_SECRET_FILE: folder.file("secret"), OIDC_ADMIN_GROUPS: "ops, leads" };
    const read = readConfig(settings, false).signIn;
    expect(read).toMatchObject({ clientSecret: "from-the-file", adminGroups: ["ops", "leads"], viewerGroups: [] });
    expect(read).toMatchObject({ scopes: "openid profile email", groupsClaim: "groups", defaultRole: "none" });
  });

  test.each(["http://127.0.0.1:9000", "http://localhost:9000/x", "http://[::1]", "https://id.example.com"])(
    "takes the issuer %s",
    (issuer) => expect(problemsOf({ ...signIn, OIDC_ISSUER: issuer })).toEqual([]),
  );

  test.each(["ADMIN_URL", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"])("needs %s beside the issuer", (name) => {
    expect(problemsOf({ ...signIn, [name]: "" })).toEqual([`${name}: must be set together with OIDC_ISSUER`]);
  });

  test("refuses a setting that has no effect, and a secret given twice", () => {
    expect(problemsOf({ OIDC_CLIENT_ID: "x" })).toEqual([
      "OIDC_CLIENT_ID: has no effect without OIDC_ISSUER; set both or neither",
    ]);
    using folder = createTempFolder();
    writeFileSync(folder.file("secret"), "hush");
    expect(problemsOf({ ...signIn, OIDC_CLIENT_SECRET_FILE: folder.file("secret") })).toEqual([
      "OIDC_CLIENT_SECRET_FILE: must not be set together with OIDC_CLIENT_SECRET",
    ]);
  });
});

describe("MODELS_FILE", () => {
  test("excludes the settings that the file replaces, each with a line", () => {
    const replaced = {
      PROXY_UPSTREAM_URL: "http://a",
      PROXY_UPSTREAM_API_KEY: "sk-secret",
      PROXY_ALIAS_MODEL: "m",
      PROXY_ALIAS_REWRITE_ALL: "off",
      PROXY_FAMILY_MODEL: "m",
      PROXY_VENDOR_PREFIXES: "claude",
    };
    expect(problemsOf({ MODELS_FILE: "models.yaml", ...replaced })).toEqual(
      Object.keys(replaced).map(
        (name) => `${name}: must not be set together with MODELS_FILE; use a member of the file`,
      ),
    );
    expect(problemsOf(replaced)).toEqual([]);
  });

  test("stands beside empty ones, and those that are defaults of the file", () => {
    const environment = { MODELS_FILE: "models.yaml", PROXY_UPSTREAM_URL: "", PROXY_MAX_CONCURRENCY: "3" };
    expect(readConfig(environment, false)).toMatchObject({ modelsFile: "models.yaml", queue: { places: 3 } });
  });
});
