import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { openWriter } from "../../src/store/sqlite/engine.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { conversationMark } from "./agent-bodies.ts";
import { seed, seedKeys, usage } from "../browser/support/seed.ts";
import { startLoad } from "./load/start.ts";
import type { AdminClient } from "../support/admin-client.ts";
import { type Bench, findProgram, startTollgateWith, type Target } from "./targets.ts";
import { ratioOf } from "./guard.ts";
import type { LoadSpec } from "./load/spec.ts";
import { type BesideRow, type GrowthRow, median } from "./results.ts";
import type { Run, Workload } from "./workloads.ts";

/**
 * What may grow where Tollgate runs for years, and must not make a request cost more: `bun run bench --only growth`. Small
 * completions at 32 connections, for each size a program of its own; the sizes of one kind are measured in turn.
 */
export interface Growing {
  name: string;
  sizes: readonly number[];
  /** Fills the data folder before the program opens it. */
  seed?: (dataDir: string, size: number) => Promise<void>;
  settings?: (bench: Bench, size: number) => Readonly<Record<string, string>>;
  /** What is sent in turn, if not the same small body. */
  bodies?: readonly string[];
  /** The keys to send with, if not that of the bench. */
  keysOf?: (size: number) => string[];
  /** Runs before or beside the load. @param size more than 0 */
  beside?: (target: Target, key: string, size: number) => Promise<unknown>;
  /** How many times the smallest size's CPU the largest may take. */
  most?: number;
}

const users = 80;

export const growing: readonly Growing[] = [
  {
    name: "keys",
    sizes: [10, 1000, 100_000],
    seed: (dataDir, size) => seed(dataDir, async (store) => void (await seedKeys(store, namesOf(size)))),
  },
  {
    name: "rows in the request log",
    sizes: [0, 500_000, 5_000_000],
    seed: seedRequestLog,
    settings: () => ({ REQUEST_LOG_ROWS: "10000000" }),
  },
  { name: "models", sizes: [1, 100, 1000], settings: settingsOfModels },
  { name: "open streams", sizes: [0, 200, 2000], beside: openStreams },
  { name: "backends of the model", sizes: [1, 2], settings: settingsOfBackends, most: 1.45 },
  {
    name: "conversations, two backends",
    sizes: [0, 1000, 100_000],
    settings: (bench) => settingsOfBackends(bench, 2),
    beside: haveConversations,
  },
  { name: "limits of the key", sizes: [0, 3], seed: seedOneKey, keysOf: () => [limitedKey(0)], most: 1.2 },
  {
    name: "hours of 80 users × 4 models",
    sizes: [0, 320 * 24, 320 * 24 * 35],
    seed: seedUsers,
    keysOf: () => [limitedKey(0)],
    bodies: Array.from({ length: users * 4 }, (_, index) =>
      JSON.stringify({
        model: `m-${index % 4}`,
        max_tokens: 16,
        messages: [{ role: "user", content: "Say hello to the world." }],
        user: `user-${index >> 2}`,
      }),
    ),
  },
  // Fewer would each send so much that the database admits requests ahead of them, which costs less.
  { name: "keys with limits", sizes: [1000, 10_000, 100_000], seed: seedLimitedKeys, keysOf: limitedKeys },
];

const namesOf = (count: number): string[] => Array.from({ length: count }, (_, index) => `key ${index}`);

const rowsPerInsert = 100_000;

/** All of the last hours, so that none is due to be deleted. */
async function seedRequestLog(dataDir: string, size: number): Promise<void> {
  mkdirSync(dataDir, { recursive: true });
  const engine = openWriter(databaseFile(dataDir));
  const first = Date.now() - size;
  for (let from = 0; from < size; from += rowsPerInsert) {
    await engine.rows(sql`insert into request_log
      (ended_at, request_id, key_id, address, client, method, path, model_asked, model_sent, status, outcome, flags,
       input_tokens, output_tokens, upstream_us, first_byte_us, duration_us, response_bytes, is_failed)
      with recursive request(n) as (select ${from} union all select n + 1 from request where n + 1 < ${from + rowsPerInsert})
      select ${first} + n, 'req-' || hex(randomblob(12)), 1 + n % 50, '10.0.0.7', 'openai-python/1.0', 'POST',
       '/v1/chat/completions', 'm', 'm', 200, 'completed', 0, 1000 + n % 900, 200, 900000, 80000, 990000, 4000, n % 50 = 0
      from request`);
    await engine.checkpoint(() => undefined);
  }
  engine.close();
}

/** Every model has the one backend; the load names the last. */
function settingsOfModels({ folder, backendPort }: Bench, size: number): Record<string, string> {
  const models = Array.from(
    { length: size - 1 },
    (_, index) => `  model-${index}: { backends: [one], aliases: [alias-${index}] }`,
  );
  const file = join(folder, `models-${size}.yaml`);
  writeFileSync(
    file,
    [
      `backends:`,
      `  one: { url: "http://127.0.0.1:${backendPort}" }`,
      `models:`,
      ...models,
      `  m: { backends: [one] }`,
      ``,
    ].join("\n"),
  );
  return { MODELS_FILE: file };
}

/** Both are the one backend, by its address and by its name. */
function settingsOfBackends({ folder, backendPort }: Bench, size: number): Record<string, string> {
  const hosts = ["127.0.0.1", "localhost"].slice(0, size);
  const file = join(folder, `backends-${size}.yaml`);
  const backends = hosts.map((host, index) => `  b${index}: { url: "http://${host}:${backendPort}" }`);
  const names = hosts.map((_, index) => `b${index}`).join(", ");
  writeFileSync(file, ["backends:", ...backends, "models:", `  m: { backends: [${names}] }`, ""].join("\n"));
  return { MODELS_FILE: file };
}

/** Each is a chat of its own, whose end the load does not see. */
async function haveConversations({ port, headers }: Target, key: string, size: number): Promise<unknown> {
  return await startLoad({
    port,
    path: "/v1/chat/completions",
    headers,
    keys: [key],
    body: JSON.stringify({
      model: "m",
      max_tokens: 1,
      messages: [{ role: "user", content: `Hello ${conversationMark}` }],
    }),
    connections: 32,
    requests: size,
    perSecond: 0,
    stallMs: 0,
    limitMs: openForMs,
  });
}

const openForMs = 600_000;

/** Each has sent its first event, and sends no other. */
async function openStreams({ port, headers }: Target, key: string, size: number): Promise<unknown> {
  const spec: LoadSpec = {
    port,
    path: "/v1/chat/completions",
    headers: [...headers, "x-simulate: gap=900s@1"],
    keys: [key],
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }),
    connections: size,
    requests: size,
    perSecond: 0,
    stallMs: openForMs,
    limitMs: openForMs,
  };
  void startLoad(spec);
  await Bun.sleep(2000 + 5 * size);
  return undefined;
}

/** As many as a run has requests. */
function limitedKeys(size: number): string[] {
  return Array.from({ length: Math.min(size, 10_000) }, (_, index) => limitedKey(index));
}

function limitedKey(index: number): string {
  return `limited-key-${index}-0123456789abcdef`;
}

const highLimits = { requests_per_minute: 1e9, tokens_per_minute: 1e12, tokens_per_day: 1e12 };

function seedLimitedKeys(
  dataDir: string,
  size: number,
  rules: typeof highLimits | undefined = highLimits,
): Promise<void> {
  return seed(
    dataDir,
    async (store) => void (await seedKeys(store, namesOf(size), { secret: limitedKey, ...(rules && { rules }) })),
  );
}

/** What each used of each model by the hour, until now. */
function seedUsers(dataDir: string, rows: number): Promise<void> {
  return seed(dataDir, async (store) => {
    const options = { secret: limitedKey, rules: { users_from: "body" } };
    const [keyId = 0] = await seedKeys(store, ["front end"], options);
    const hour = Math.floor(Date.now() / 3_600_000);
    for (let user = 0; user < users; user++) {
      const identity = { source: `key:${keyId}`, external: `user-${user}` };
      const { id } = await store.subjects.see({ ...identity, keyId, name: undefined, max: 1000 });
      await store.usage.add(
        Array.from({ length: rows / users }, (_, index) => ({
          ...usage(keyId, (hour - (index >> 2)) * 60, [1, 1000, 200]),
          userId: id,
          model: `m-${index % 4}`,
        })),
      );
    }
  });
}

function seedOneKey(dataDir: string, limits: number): Promise<void> {
  return seedLimitedKeys(dataDir, 1, limits === 0 ? undefined : highLimits);
}

/** @returns a program of that size, and the keys to send with */
export async function startGrown(
  bench: Bench,
  { name, seed: fill, settings, keysOf, beside }: Growing,
  size: number,
): Promise<{ target: Target; keys: string[] }> {
  const dataDir = join(bench.folder, `growth ${name} ${size}`);
  await fill?.(dataDir, size);
  const started = await startTollgateWith(bench, { DATA_DIR: dataDir, ...settings?.(bench, size) });
  // Without a session of the console, which would list all keys before and after each round.
  const target = { name: sizeName(size), port: started.port, headers: started.headers, process: started.process };
  const keys = keysOf?.(size) ?? [bench.key];
  if (size > 0) await beside?.(target, bench.key, size);
  return { target, keys };
}

const sizeName = (size: number): string => size.toLocaleString("en");

/** @param runs of each size, in turn */
export function growthRow({ name, sizes }: Growing, workload: Workload, runs: readonly (readonly Run[])[]): GrowthRow {
  const [figure] = workload.figures;
  if (figure === undefined) throw new Error("The workload has no figure");
  const cpuUs = runs.map((own) => median(own.map(figure.of)));
  return { name, sizes, cpuUs, ratio: ratioOf(workload, runs.at(-1) ?? [], runs.at(0) ?? []) };
}

/** What a server does now and then. Its twin, with the same data, does not; each rests while the other is measured. */
export interface Beside {
  name: string;
  settings?: Readonly<Record<string, string>>;
  /** Does it, over and over. */
  act?: (started: {
    admin: AdminClient;
    dataDir: string;
    command: (...args: string[]) => Promise<void>;
  }) => Promise<unknown>;
}

export const besides: readonly Beside[] = [
  { name: "deletion of old requests", settings: { REQUEST_LOG_ROWS: "1000" } },
  {
    name: "a backup",
    act: async ({ dataDir, command }) => {
      const copy = join(dataDir, "copy.db");
      await command("backup", copy);
      rmSync(copy);
    },
  },
  {
    name: "a check",
    act: ({ command }) => command("check"),
  },
  {
    name: "the largest report",
    act: async ({ admin }) =>
      void (await (await admin.request("GET", "/api/usage/history?days=30&bucket_minutes=1")).bytes()),
  },
];

/** @returns both twins; the one that acts does so while it is not stopped */
export async function startTwins(bench: Bench, { settings, act }: Beside) {
  const dataDir = join(bench.folder, "twins");
  if (!existsSync(dataDir)) {
    await seedRequestLog(dataDir, 5_000_000);
    const engine = openWriter(databaseFile(dataDir));
    await engine.rows(sql`insert into usage_minute (minute, key_id, request_count, input_tokens, output_tokens)
      with recursive n(i) as (select 0 union all select i + 1 from n where i < 2159999)
      select ${Math.floor(Date.now() / 60_000)} - i / 50, 1 + i % 50, 1, 1000, 200 from n`);
    await engine.checkpoint(() => undefined);
    engine.close();
  }
  const own = (name: string) => ({ DATA_DIR: `${dataDir} ${name}`, REQUEST_LOG_ROWS: "10000000" });
  for (const name of ["without", "with"]) {
    rmSync(`${dataDir} ${name}`, { recursive: true, force: true });
    cpSync(dataDir, `${dataDir} ${name}`, { recursive: true });
  }
  const [without, beside] = [
    await startTollgateWith(bench, own("without")),
    await startTollgateWith(bench, { ...own("with"), ...settings }),
  ];
  const folder = `${dataDir} with`;
  const env = { ...process.env, DATA_DIR: folder, PROXY_UPSTREAM_URL: `http://127.0.0.1:${bench.backendPort}` };
  async function command(...args: string[]): Promise<void> {
    const started = Bun.spawn([findProgram(), ...args], { env, stdout: "pipe", stderr: "pipe" });
    const written = await Promise.all([started.stdout, started.stderr].map((stream) => new Response(stream).text()));
    const status = await started.exited;
    if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${written.join("")}`);
  }
  return {
    without: { ...without, name: "without" },
    beside: { ...beside, name: "with" },
    /** @returns ends it once it is through */
    begin(): () => Promise<void> {
      const ending = new AbortController();
      const acting = (async () => {
        if (act === undefined) return;
        while (!ending.signal.aborted) await act({ admin: beside.admin, dataDir: folder, command });
      })();
      return () => {
        ending.abort();
        return acting;
      };
    },
  };
}

export function besideRow({ name }: Beside, workload: Workload, runs: ReadonlyMap<string, readonly Run[]>): BesideRow {
  const [without = [], beside = []] = [runs.get("without"), runs.get("with")];
  const p99 = (own: readonly Run[]): number => median(own.map(({ result }) => result.latency.p99 / 1000));
  const memory = (own: readonly Run[]): number => Math.max(...own.map(({ peakMb }) => peakMb));
  const figures = workload.figures.filter((figure) => figure.name === "latency p99");
  return {
    name,
    p99Ms: [p99(without), p99(beside)],
    ratio: ratioOf({ ...workload, figures }, beside, without),
    extraMb: memory(beside) - memory(without),
  };
}

export const isSlow = ({ ratio, extraMb }: BesideRow): boolean => !(ratio <= 2 && extraMb <= 32);

const mostGrowth = 1.2;

export const isSteep = ({ name, ratio }: GrowthRow): boolean =>
  !(ratio <= (growing.find((kind) => kind.name === name)?.most ?? mostGrowth));
