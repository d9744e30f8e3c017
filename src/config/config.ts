// The environment as a value: the settings (here), their kinds, what excludes each other, and the file of models.
//
// It keeps true: a `Config` is valid as a whole; otherwise there is one line for each problem, and none of them shows a
// secret, or what may hold one. An empty value counts as unset. Without a file of models, the settings mean one backend
// (`catalog.ts`); both ways make a `Catalog`, which is all that other rooms know of them. It follows no changes: who
// reads the file again is `server/current-catalog.ts`.

import { type Static, type TObject, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type Environment, findContradictions } from "./contradictions.ts";
import { type ClientRules, clientRules } from "../domain/models.ts";
import {
  choice,
  chosenSecret,
  hostPattern,
  integer,
  invalid,
  list,
  optionalInteger,
  optionalText,
  readClientRules,
  readFile,
  readOrigins,
  readUpstreamUrl,
  seconds,
  securePattern,
  socketPattern,
  text,
  upstreamAddress,
  upstreamPattern,
  type Variable,
  visibleAscii,
} from "./setting-kinds.ts";

export type { Environment };

const secret = {
  ...optionalText("visible ASCII characters", { pattern: visibleAscii }),
  secret: true,
};
const groups = {
  schema: Type.Optional(Type.Array(Type.String())),
  read: list,
  allowed: "groups separated by commas, as the provider spells them",
};

export const variables = {
  PROXY_UPSTREAM_URL: {
    schema: Type.String({ default: "http://127.0.0.1:8000", pattern: upstreamPattern }),
    read: readUpstreamUrl,
    allowed: "an http:// or https:// address without user, query or fragment, or unix:/ and the path of a socket",
  },
  PROXY_UPSTREAM_API_KEY: secret,
  PROXY_ALIAS_MODEL: optionalText("a model name"),
  PROXY_ALIAS_REWRITE_ALL: choice(["on", "off"], "off"),
  PROXY_FAMILY_MODEL: optionalText("a model name"),
  PROXY_VENDOR_PREFIXES: {
    schema: Type.Array(Type.String(), { default: ["anthropic", "claude"] }),
    read: list,
    allowed: "prefixes separated by commas",
  },
  MODELS_FILE: optionalText("a file"),
  PROXY_HAN_GUARD: choice(["on", "off"], "on"),
  PROXY_FORCE_STREAM_USAGE: choice(["off", "final", "continuous"], "off"),
  CLIENT_RULES: {
    schema: Type.Unsafe<"off" | ClientRules>(
      Type.Union(
        [
          Type.Literal("off"),
          Type.Literal("auto"),
          Type.Array(Type.Union(clientRules.map((name) => Type.Literal(name)))),
        ],
        { default: "off" },
      ),
    ),
    read: readClientRules,
    allowed: `off, auto, or names separated by commas: ${clientRules.join(", ")}`,
  },
  PROXY_SSE_KEEPALIVE: seconds({ default: 0 }),
  PROXY_CORS_ORIGINS: {
    schema: Type.Optional(Type.Union([Type.Literal("*"), Type.Array(Type.String())])),
    read: readOrigins,
    allowed: "* or origins such as https://chat.example.com, separated by commas",
  },
  PROXY_CLOSED_PATHS: {
    schema: Type.Optional(Type.Array(Type.String({ pattern: "^/v1/[^%;?#\\\\]+$" }), { maxItems: 64 })),
    read: list,
    allowed: "up to 64 globs that begin with /v1/, such as /v1/files*, separated by commas",
  },
  PUBLIC_URL: optionalText("an origin such as https://gate.example.com, without /v1", {
    pattern: "^https?://[^\\s/?#@]+$",
  }),
  CONTACT: optionalText("a sentence of at most 300 characters", { maxLength: 300, pattern: "^[^\\x00-\\x1f\\x7f]+$" }),
  PROXY_STREAM_READ_TIMEOUT: seconds({ default: 1200, exclusiveMinimum: 0 }),
  PROXY_NONSTREAM_READ_TIMEOUT: seconds({ default: 1200, exclusiveMinimum: 0 }),
  MAX_CONTEXT_TOKENS: integer({ minimum: 1, maximum: 1_000_000_000, default: 202_752 }),
  MAX_OUTPUT_TOKENS: integer({ minimum: 1, maximum: 1_000_000_000, default: 16_384 }),
  MAX_BODY_BYTES: integer({ minimum: 1024, maximum: 1024 ** 3, default: 64 * 1024 ** 2 }),
  MAX_HELD_BYTES: integer({ minimum: 4096, maximum: 2 ** 40, default: 1024 ** 3 }),
  HOST: text(
    Type.String({ default: "127.0.0.1", pattern: `${hostPattern}|${socketPattern}` }),
    "an address or name to listen on, or unix:/ and the path of a socket",
  ),
  SOCKET_MODE: text(Type.String({ default: "0666", pattern: "^0?[0-7]{3}$" }), "a mode in octal, such as 0660"),
  PROXY_MAX_CONCURRENCY: optionalInteger({ minimum: 1, maximum: 1_000_000 }),
  PROXY_MAX_PREFILL_TOKENS: optionalInteger({ minimum: 1, maximum: 1_000_000_000 }),
  LIMITS_FALLBACK: {
    ...choice(["local", "open", "closed"], "local"),
    allowed:
      "local (each process admits its share of a limit, so the excess is at most one a process), open (no limit holds), or closed (503)",
  },
  PROXY_QUEUE_TIMEOUT: seconds({ default: 60 }),
  PROXY_QUEUE_TIMEOUT_LOW: seconds({ default: 3600 }),
  PROXY_BACKEND_WAIT: seconds({ default: 0 }),
  PROXY_QUEUE_SIZE: integer({ minimum: 0, maximum: 1_000_000, default: 1000 }),
  // 0: the kernel chooses a free port.
  PORT: integer({ minimum: 0, maximum: 65_535, default: 8080 }),
  ADMIN_PORT: optionalInteger({ minimum: 0, maximum: 65_535 }),
  ADMIN_HOST: optionalText("an address or name to listen on", { pattern: hostPattern }),
  TLS_CERT: optionalText("a file"),
  TLS_KEY: optionalText("a file"),
  DATA_DIR: text(Type.String({ default: "./data" }), "a folder"),
  USAGE_MINUTES_DAYS: integer({ minimum: 1, maximum: 3660, default: 30 }),
  DATABASE_URL: {
    // A password may have a comma, and ends at the last @.
    ...optionalText("a postgres:// address with one host", {
      pattern: "^postgres(ql)?://(?:[^/?#]*@)?[^/?#,]*(?:[/?#]|$)",
    }),
    secret: true,
  },
  PROCESSES: {
    schema: Type.Union([Type.Literal("auto"), Type.Integer({ minimum: 1, maximum: 256 })], { default: 1 }),
    read: (value: string) =>
      value.toLowerCase() === "auto" ? "auto" : /^\d{1,3}$/.test(value) ? Number(value) : invalid,
    allowed: "auto or a whole number from 1 to 256",
  },
  ADMIN_USERNAME: text(Type.String({ default: "admin" }), "a user name"),
  ADMIN_PASSWORD: chosenSecret({ minLength: 8, minDifferent: 1 }, "at least 8 characters"),
  SECRET_KEY: chosenSecret({ minLength: 16, minDifferent: 8 }, "at least 16 characters, 8 of them different"),
  ADMIN_URL: optionalText("an origin such as https://gate.example.com, or http:// on a loopback address", {
    pattern: `${securePattern}$`,
  }),
  OIDC_ISSUER: optionalText("an https:// address, or http:// on a loopback address", {
    pattern: `${securePattern}(/[^?#\\s]*)?$`,
  }),
  OIDC_CLIENT_ID: optionalText("the id of a client"),
  OIDC_CLIENT_SECRET: secret,
  OIDC_CLIENT_SECRET_FILE: {
    schema: Type.Optional(Type.String({ pattern: visibleAscii })),
    read: readFile,
    allowed: "a file that can be read, with nothing but the secret",
  },
  OIDC_SCOPES: text(
    Type.String({ default: "openid profile email", pattern: "(^| )openid( |$)" }),
    "scopes separated by spaces, openid among them",
  ),
  OIDC_NAME: text(Type.String({ default: "OpenID Connect", maxLength: 60 }), "a name of at most 60 characters"),
  OIDC_ONLY: choice(["on", "off"], "off"),
  OIDC_GROUPS_CLAIM: text(Type.String({ default: "groups" }), "the name of a claim; dots walk into objects"),
  OIDC_ADMIN_GROUPS: groups,
  OIDC_VIEWER_GROUPS: groups,
  OIDC_DEFAULT_ROLE: choice(["none", "member"], "none"),
  OIDC_CREATE_TEAMS: choice(["on", "off"], "off"),
  OIDC_CHECK_SECONDS: seconds({ default: 3600, exclusiveMinimum: 0 }),
  MEMBER_KEYS_DAYS: integer({ minimum: 1, maximum: 3660, default: 30 }),
  TRUST_PROXY: integer({ minimum: 0, maximum: 100, default: 0 }),
  METRICS_TOKEN: secret,
  METRICS_PER_KEY: choice(["on", "off"], "off"),
  NOTICE_URL: {
    ...optionalText("an http:// or https:// address", { pattern: "^https?://[^\\s/?#]+[^\\s]*$" }),
    secret: true,
  },
  NOTICE_SECRET: {
    ...optionalText("whsec_ and base64", {
      pattern: "^whsec_(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    }),
    secret: true,
  },
  REQUEST_LOG_DAYS: integer({ minimum: 0, maximum: 3650, default: 7 }),
  REQUEST_LOG_ROWS: integer({ minimum: 1000, maximum: 1_000_000_000, default: 5_000_000 }),
  BACKUP_DIR: optionalText("an existing folder"),
  BACKUP_AT: text(
    Type.String({ default: "03:30", pattern: "^([01]\\d|2[0-3]):[0-5]\\d$" }),
    "a time of the day in Seoul, such as 03:30",
  ),
  BACKUP_KEEP: integer({ minimum: 1, maximum: 10_000, default: 7 }),
  SHUTDOWN_GRACE: seconds({ default: 30 }),
  LOG_LEVEL: choice(["debug", "info", "warn", "error"], "info"),
  LOG_FORMAT: {
    schema: Type.Optional(Type.Union([Type.Literal("pretty"), Type.Literal("json")])),
    read: (value: string) => value.toLowerCase(),
    allowed: "one of pretty, json",
  },
} satisfies Record<string, Variable<TSchema>>;

/** The names of all settings; a test checks that the handbook lists them. */
export const variableNames: readonly string[] = Object.keys(variables);

type Variables = typeof variables;
type Settings = Static<TObject<{ [Name in keyof Variables]: Variables[Name]["schema"] }>>;

/** All settings, parsed and validated. Times are in milliseconds. */
export type Config = ReturnType<typeof configFrom>;

export class ConfigError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
  }
}

/**
 * Parses the environment.
 * @param terminal whether standard output is a terminal, which determines the default log format
 * @throws ConfigError with one line for each problem
 */
export function readConfig(environment: Environment, terminal: boolean): Config {
  const problems: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const [name, variable] of Object.entries<Variable<TSchema>>(variables)) {
    const given = environment[name];
    // An empty value counts as unset, because compose and unit files pass unset variables that way.
    const value: unknown = given === undefined || given === "" ? variable.schema.default : variable.read(given);
    if (value === undefined) continue;
    if (Value.Check(variable.schema, value)) settings[name] = value;
    else problems.push(wrongValue(name, variable, given ?? ""));
  }
  if (problems.length === 0) problems.push(...findContradictions(settings as Settings, environment));
  if (problems.length > 0) throw new ConfigError(problems);
  return configFrom(settings as Settings, terminal);
}

function wrongValue(name: string, variable: Variable<TSchema>, given: string): string {
  // An address may contain a password.
  const shown = variable.secret === true || given.includes("@") ? "its value" : JSON.stringify(given);
  return `${name}: ${shown} is not allowed; use ${variable.allowed}`;
}

/** An admin side with a port of its own is reachable from other machines only if the operator says so. */
const defaultAdminHost = ({ HOST, ADMIN_PORT }: Settings): string =>
  ADMIN_PORT === undefined || isLoopback(HOST) ? HOST : "127.0.0.1";

const tlsFiles = ({ TLS_CERT, TLS_KEY }: Settings): { certFile: string; keyFile: string } | undefined =>
  TLS_CERT === undefined || TLS_KEY === undefined ? undefined : { certFile: TLS_CERT, keyFile: TLS_KEY };

function backupPlan({ BACKUP_DIR: folder, BACKUP_AT: at, BACKUP_KEEP: keep }: Settings) {
  if (folder === undefined) return undefined;
  const [hours = 0, minutes = 0] = at.split(":").map(Number);
  return { folder, atMinute: hours * 60 + minutes, keep };
}

function signInOf(settings: Settings) {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, ADMIN_URL: consoleUrl } = settings;
  const clientSecret = settings.OIDC_CLIENT_SECRET ?? settings.OIDC_CLIENT_SECRET_FILE;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined || consoleUrl === undefined)
    return undefined;
  return {
    issuer,
    clientId,
    clientSecret,
    consoleUrl,
    scopes: settings.OIDC_SCOPES,
    name: settings.OIDC_NAME,
    /** The form for the password is folded. */
    isOnly: settings.OIDC_ONLY === "on",
    groupsClaim: settings.OIDC_GROUPS_CLAIM,
    adminGroups: settings.OIDC_ADMIN_GROUPS ?? [],
    viewerGroups: settings.OIDC_VIEWER_GROUPS ?? [],
    defaultRole: settings.OIDC_DEFAULT_ROLE,
    createsTeams: settings.OIDC_CREATE_TEAMS === "on",
    checkMs: settings.OIDC_CHECK_SECONDS * 1000,
    memberKeysDays: settings.MEMBER_KEYS_DAYS,
  };
}

const isLoopback = (host: string): boolean => /^(?:127\.\d+\.\d+\.\d+|\[?::1\]?|localhost)$/i.test(host);

function configFrom(settings: Settings, terminal: boolean) {
  return {
    upstream: {
      ...upstreamAddress(settings.PROXY_UPSTREAM_URL),
      apiKey: settings.PROXY_UPSTREAM_API_KEY,
      streamReadTimeoutMs: settings.PROXY_STREAM_READ_TIMEOUT * 1000,
      nonStreamReadTimeoutMs: settings.PROXY_NONSTREAM_READ_TIMEOUT * 1000,
    },
    /** Backends and models; undefined: `upstream` and `rewrite` say them. */
    modelsFile: settings.MODELS_FILE,
    rewrite: {
      servedModel: settings.PROXY_ALIAS_MODEL,
      reasoningModel: settings.PROXY_FAMILY_MODEL,
      rewriteUnknownModels: settings.PROXY_ALIAS_REWRITE_ALL === "on",
      vendorPrefixes: settings.PROXY_VENDOR_PREFIXES,
      hanGuard: settings.PROXY_HAN_GUARD === "on",
      maxContextTokens: settings.MAX_CONTEXT_TOKENS,
      maxOutputTokens: settings.MAX_OUTPUT_TOKENS,
      forceStreamUsage: settings.PROXY_FORCE_STREAM_USAGE,
      clientRules: settings.CLIENT_RULES === "off" ? [] : settings.CLIENT_RULES,
    },
    proxy: {
      maxBodyBytes: settings.MAX_BODY_BYTES,
      /** Bounds all requests together; a key gets a quarter. */
      maxHeldBytes: settings.MAX_HELD_BYTES,
      /** 0: never. */
      sseKeepaliveMs: settings.PROXY_SSE_KEEPALIVE * 1000,
      corsOrigins: settings.PROXY_CORS_ORIGINS,
      closedPaths: settings.PROXY_CLOSED_PATHS ?? [],
      publicUrl: settings.PUBLIC_URL,
      contact: settings.CONTACT,
    },
    queue: {
      /** Undefined: the backend gets any number of requests at once. */
      places: settings.PROXY_MAX_CONCURRENCY,
      /** Undefined: a backend reads any number of long prompts at once. */
      maxPrefillTokens: settings.PROXY_MAX_PREFILL_TOKENS,
      /** Of low priority, and as many others. */
      maxWaiting: settings.PROXY_QUEUE_SIZE,
      /** 0: nothing waits. */
      timeoutMs: settings.PROXY_QUEUE_TIMEOUT * 1000,
      lowTimeoutMs: settings.PROXY_QUEUE_TIMEOUT_LOW * 1000,
      /** 0: nothing waits for a backend that is out. */
      backendWaitMs: settings.PROXY_BACKEND_WAIT * 1000,
    },
    listen: {
      host: settings.HOST,
      port: settings.PORT,
      /** The mode of a UNIX socket. */
      socketMode: Number.parseInt(settings.SOCKET_MODE, 8),
      adminPort: settings.ADMIN_PORT,
      /** The same as `host` if both sides share a port. */
      adminHost: settings.ADMIN_HOST ?? defaultAdminHost(settings),
      /** Serves HTTPS on both sides; undefined: HTTP. */
      tls: tlsFiles(settings),
      /** Number of trusted reverse proxies that append to X-Forwarded-For. */
      trustedHops: settings.TRUST_PROXY,
    },
    storage: {
      dataDir: settings.DATA_DIR,
      databaseUrl: settings.DATABASE_URL,
      retention: {
        usageMinutesDays: settings.USAGE_MINUTES_DAYS,
        /** 0 days: requests are not logged one by one in the database. */
        requestLog: { days: settings.REQUEST_LOG_DAYS, rows: settings.REQUEST_LOG_ROWS },
      },
      /** Undefined: the server makes none. */
      backup: backupPlan(settings),
    },
    processes: settings.PROCESSES,
    admin: {
      username: settings.ADMIN_USERNAME,
      password: settings.ADMIN_PASSWORD,
      secretKey: settings.SECRET_KEY,
      metricsToken: settings.METRICS_TOKEN,
    },
    /** By OpenID Connect; undefined: only the password. */
    signIn: signInOf(settings),
    limitsFallback: settings.LIMITS_FALLBACK,
    notices: { url: settings.NOTICE_URL, secret: settings.NOTICE_SECRET },
    metrics: { perKey: settings.METRICS_PER_KEY === "on" },
    shutdownGraceMs: settings.SHUTDOWN_GRACE * 1000,
    log: {
      level: settings.LOG_LEVEL,
      format: settings.LOG_FORMAT ?? (terminal ? ("pretty" as const) : ("json" as const)),
    },
  };
}
