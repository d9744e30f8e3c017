import { Elysia } from "elysia";
import { expect } from "bun:test";
import { openApiDocument } from "../../../src/admin/openapi.ts";
import { type AdminDeps, adminRoutes } from "../../../src/admin/routes.ts";
import { clientAddress } from "../../../src/admin/client-address.ts";
import { bootstrapAdmin } from "../../../src/admin/bootstrap.ts";
import { createLog } from "../../../src/log/log.ts";
import type { Store } from "../../../src/store/store.ts";
import { type Document, problemsOfAnswer } from "./document.ts";
import { openTestStore } from "./store.ts";

export const password = "correct horse battery staple";

/** Who sends a request: everything that a browser would send along. */
export interface Visitor {
  cookie?: string;
  csrf?: string;
}

export interface Sent {
  as?: Visitor;
  headers?: Record<string, string>;
  /** Sent as JSON; for anything else use `raw`. */
  json?: unknown;
  raw?: BodyInit;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Tests reach into it; a wrong shape fails them, and the document has checked it already. */
  // oxlint-disable-next-line typescript/no-explicit-any -- see above
  json: any;
}

export interface Admin {
  origin: string;
  store: Store;
  dataDir: string;
  signingKey: string;
  /** The server's clock, which the test may set. */
  time: { now: number };
  logged: string[];
  send(method: string, path: string, sent?: Sent): Promise<Answer>;
  login(): Promise<Required<Visitor>>;
  /** Makes a key as the console does. */
  createKey(name: string): Promise<{ id: number; key: string }>;
  stop(): Promise<void>;
}

export type Overrides = Partial<Omit<AdminDeps, "store" | "signingKey">> & {
  store?: (real: Store) => Store;
  secretKey?: string;
  trustedHops?: number;
};

/** The admin side over real HTTP, at noon of a day in Seoul. Every answer is held against the OpenAPI document. */
export async function startAdmin({
  store: wrap,
  secretKey,
  trustedHops = 0,
  ...overrides
}: Overrides = {}): Promise<Admin> {
  const time = { now: Date.parse("2026-05-01T12:00:00+09:00") };
  const { store: real, dataDir, remove } = await openTestStore(time);
  const store = wrap?.(real) ?? real;
  const config = { username: "admin", password, secretKey: secretKey ?? "0123456789abcdef", metricsToken: "scrape-me" };
  const { signingKey } = await bootstrapAdmin({ store: real, config, dataDir, print: () => {} });
  const logged: string[] = [];
  const clock = () => time.now;
  const log = createLog({ level: "debug", format: "json", clock, write: (line) => logged.push(line) });
  const routes = adminRoutes({
    store,
    config,
    signingKey,
    clock,
    log,
    clientAddress: (request) =>
      clientAddress({
        forwardedFor: request.headers.get("x-forwarded-for"),
        socketAddress: server.requestIP(request)?.address ?? "",
        trustedHops,
      }),
    metricsText: async () => "# HELP tollgate_up\ntollgate_up 1\n",
    separatePorts: false,
    inFlight: async () => 3,
    gpuSamplesReceived: () => {},
    probeUpstream: async () => ({ ok: true }),
    ...overrides,
  });
  const app = new Elysia({ handler: { standardHostname: false } }).use(routes);
  const document = openApiDocument(routes) as unknown as Document;
  const server: Bun.Server<undefined> = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    fetch: app.fetch,
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
    expect(problemsOfAnswer(document, { method, path, status: response.status, contentType, text })).toEqual([]);
    return { status: response.status, headers: response.headers, text, json: parsed(text) };
  };

  const login: Admin["login"] = async () => {
    const answer = await send("POST", "/api/login", { json: { username: "admin", password } });
    expect(answer.status).toBe(200);
    return { cookie: cookieOf(answer), csrf: answer.json.csrf_token };
  };

  return {
    origin,
    store,
    dataDir,
    signingKey,
    time,
    logged,
    send,
    login,
    createKey: async (name) => {
      const created = await store.keys.create({
        name,
        key: crypto.randomUUID().replaceAll("-", ""),
        createdAt: time.now,
      });
      if (created === "collision") throw new Error("two keys alike");
      return created;
    },
    stop: async () => {
      await server.stop(true);
      await remove();
    },
  };
}

/** The cookie that an answer sets, as a browser sends it back. */
export function cookieOf(answer: Answer): string {
  return answer.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
