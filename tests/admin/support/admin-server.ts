import { Elysia } from "elysia";
import { expect } from "bun:test";
import { openApiDocument } from "../../../src/admin/http/openapi.ts";
import { adminRoutes } from "../../../src/admin/routes.ts";
import type { AdminDeps } from "../../../src/admin/http/deps.ts";
import { clientAddressOf } from "../../../src/domain/client-address.ts";
import { bootstrapAdmin } from "../../../src/admin/session/bootstrap.ts";
import { passwordHashSetting } from "../../../src/admin/session/password.ts";
import { explainRewrite } from "../../../src/proxy/rewrite/explain.ts";
import { password, quickPasswordHash } from "../../support/admin-client.ts";
import type { EngineName } from "../../support/postgres.ts";
import { backendOf, fileCatalog } from "../../support/catalog.ts";
import { type Person, signIn } from "../../support/sign-in.ts";
import { rewriteRules, rulesOf } from "../../support/rewrite-rules.ts";
import { reportSettings } from "../../../src/config/settings-report.ts";
import { createLog } from "../../../src/log/log.ts";
import { defaultRetention } from "../../../src/store/retention.ts";
import { foresee } from "../../../src/server/admin-side.ts";
import type { Store } from "../../../src/store/store.ts";
import type { Change } from "../../../src/domain/changes.ts";
import type { Facts } from "../../../src/watching/state-rules.ts";
import { Watch } from "../../../src/watching/watch.ts";
import { type Document, problemsOfResponse } from "./document.ts";
import { openTestStore } from "./store.ts";

/** The credentials that a browser sends. */
export interface Visitor {
  cookie?: string;
  csrf?: string;
}

export interface Sent {
  as?: Visitor;
  headers?: Record<string, string>;
  /** Sent as JSON; use `raw` for anything else. */
  json?: unknown;
  raw?: BodyInit;
}

export interface TestResponse {
  status: number;
  headers: Headers;
  text: string;
  /** Not typed: a wrong shape fails the test, and the response has been checked against the OpenAPI document. */
  // oxlint-disable-next-line typescript/no-explicit-any -- see above
  json: any;
}

export interface Admin {
  origin: string;
  store: Store;
  dataDir: string;
  signingKey: string;
  /** The server's clock. A test may set it. */
  time: { now: number };
  logged: string[];
  /** Every route of the app; parameters in the path as `:id`. */
  routes: readonly { method: string; path: string }[];
  send(method: string, path: string, sent?: Sent): Promise<TestResponse>;
  login(): Promise<Required<Visitor>>;
  /** A session of somebody who has just signed in at a provider. */
  signIn(person: Parameters<typeof signIn>[1]): Promise<Person>;
  /** Creates a key in the store. */
  createKey(name: string): Promise<{ id: number; key: string }>;
  /** Does what the server does again and again. */
  repeat(): Promise<void>;
  /** Resolves when the server has handled every request that it has received. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

export type Overrides = Partial<Omit<AdminDeps, "store" | "signingKey">> & {
  /** What the server knows, beside whether its database can be written. */
  facts?: () => Partial<Facts>;
  store?: (real: Store) => Store;
  secretKey?: string;
  trustedHops?: number;
  /** Stored before the start. */
  passwordHash?: string;
  engine?: EngineName;
  /** Where it listens, for who has to know that before. */
  port?: number;
};

const url = "http://127.0.0.1:8000";
const oneBackend = fileCatalog([backendOf("127.0.0.1:8000", { url })], [], { unknownNames: "pass", file: undefined });

/** The admin API over real HTTP, at noon in Seoul. Every response is checked against the OpenAPI document. */
export async function startAdmin({
  store: wrap,
  secretKey,
  trustedHops = 0,
  passwordHash = quickPasswordHash,
  retention = defaultRetention,
  engine = "SQLite",
  port = 0,
  facts = () => ({}),
  ...overrides
}: Overrides = {}): Promise<Admin> {
  const time = { now: Date.parse("2026-05-01T12:00:00+09:00") };
  const { store: real, dataDir, remove } = await openTestStore(time, retention, engine);
  const store = wrap?.(real) ?? real;
  const config = { username: "admin", password, secretKey: secretKey ?? "0123456789abcdef", metricsToken: "scrape-me" };
  await real.settings.set(passwordHashSetting, passwordHash);
  const { signingKey } = await bootstrapAdmin({ store: real, config, dataDir, print: () => {} });
  const logged: string[] = [];
  const repeated: (() => Promise<void>)[] = [];
  const clock = () => time.now;
  const log = createLog({ level: "debug", format: "json", clock, write: (line) => logged.push(line) });
  const gather = async (): Promise<Facts> => {
    const isWritable = await store.checkWritable().then(
      () => true,
      () => false,
    );
    return { now: clock(), database: { name: "SQLite", isWritable }, ...facts() };
  };
  const watch = new Watch<Change>({ gather, store: store.states, process: "host/1", clock });
  const routes = adminRoutes({
    store,
    config,
    signIn: undefined,
    every: (_, work) => void repeated.push(work),
    signingKey,
    clock,
    log,
    clientAddress: (request) => clientAddressOf(trustedHops)(request, server.requestIP(request)?.address),
    metricsContentType: "text/plain; version=0.0.4; charset=utf-8",
    metricsText: async () => "# HELP tollgate_up\ntollgate_up 1\n",
    separatePorts: false,
    inFlight: async () => 3,
    catalog: () => oneBackend,
    discoveredModels: () => [],
    backendStates: async () => [],
    setDraining: async () => {},
    running: async () => [],
    endRequest: async (id) => id === "1-1",
    endRunning: async () => {},
    gpuSamplesReceived: () => {},
    upstreamUrl: "http://127.0.0.1:8000",
    watch,
    testNotice: async () => undefined,
    explain: (path, body) =>
      explainRewrite(path, body, rulesOf(rewriteRules({ servedModel: "Served", hanGuard: true })).names),
    learnClientNeeds: async () => () => ({ engines: [], rules: [] }),
    foresee,
    settings: () => reportSettings({ PORT: "1", SECRET_KEY: "0123456789abcdef" }),
    versions: { tollgate: "1.0.0", commit: "c", bun: "1" },
    passwordFromEnvironment: false,
    retention,
    ...overrides,
  });
  const app = new Elysia({ handler: { standardHostname: false } }).use(routes);
  const document = openApiDocument(routes) as unknown as Document;
  const handling = new Set<Promise<Response>>();
  const server: Bun.Server<undefined> = Bun.serve({
    port,
    hostname: "127.0.0.1",
    development: false,
    fetch(request) {
      const response = Promise.resolve(app.fetch(request));
      handling.add(response);
      return response.finally(() => handling.delete(response));
    },
  });
  const origin = server.url.origin;

  const send: Admin["send"] = async (method, path, { as = {}, headers = {}, json, raw } = {}) => {
    const body = json === undefined ? raw : JSON.stringify(json);
    const response = await fetch(origin + path, {
      method,
      redirect: "manual",
      headers: {
        ...(json !== undefined && { "content-type": "application/json" }),
        ...(as.cookie !== undefined && { cookie: as.cookie }),
        ...(as.csrf !== undefined && { "x-csrf-token": as.csrf }),
        ...headers,
      },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    const contentType = response.headers.get("content-type") ?? "";
    expect(problemsOfResponse(document, { method, path, status: response.status, contentType, text })).toEqual([]);
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };

  const login: Admin["login"] = async () => {
    const response = await send("POST", "/api/login", { json: { username: "admin", password } });
    expect(response.status).toBe(200);
    return { cookie: cookieOf(response), csrf: response.json.csrf_token };
  };

  return {
    origin,
    store,
    dataDir,
    signingKey,
    time,
    logged,
    routes: routes.routes,
    send,
    login,
    signIn: (person) => signIn({ store: real, signingKey, clock }, person),
    createKey: async (name) => {
      const created = await store.keys.create({
        name,
        key: crypto.randomUUID().replaceAll("-", ""),
        createdAt: time.now,
      });
      if (typeof created === "string") throw new Error("key collision");
      return created;
    },
    repeat: async () => {
      for (const work of repeated) await work();
    },
    idle: async () => {
      while (handling.size > 0) await Promise.all(handling);
    },
    stop: async () => {
      await server.stop(true);
      await remove();
    },
  };
}

/** The cookie that a response sets, in the form that a browser sends back. */
export function cookieOf(response: TestResponse): string {
  return response.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
