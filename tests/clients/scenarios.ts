import type { SimulatedRequest } from "../support/simulator/request.ts";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type ClientKind, type RealClient, usersSecret } from "./client.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

/** What stands behind a client while it runs. */
export interface World extends AsyncDisposable {
  gate: Tollgate;
  /** The client's key. */
  key: string;
  backend: () => Simulator;
}

/** Something that a client may meet, and what is expected of it. */
export interface Scenario {
  name: string;
  /** Of the server, beside those that all have. */
  settings?: Readonly<Record<string, string>>;
  /** Members of the client's key. */
  limits?: object;
  /** The client sends another key. */
  wrongKey?: true;
  /** Before the client starts. */
  prepare?: (world: World, client: RealClient) => unknown;
  /** While it runs. */
  meanwhile?: (world: World, client: RealClient) => Promise<unknown>;
  /** The backend refuses what strict templates refuse. */
  strict?: true;
  /** The backend refuses longer bodies: its context is full. */
  contextBytes?: number;
  /** It says so in a stream. */
  fullInStream?: true;
  /** What is asked after the first question, in the same conversation; the last one is the run that counts. */
  furtherQuestions?: readonly string[];
  /** What somebody types on its screen, after the other questions or instead of them. */
  typed?: readonly string[];
  /** No other client meets it. */
  only?: RealClient["id"];
  /** Beside those that meet everything. */
  alsoFor?: readonly ClientKind[];
  /** The backend listens only after that time. */
  backAfterMs?: number;
  framesPerSecond?: number;
  /** Of each answer. */
  outputTokens?: number;
  /** What a user should get in the end; unset: that depends on the client. */
  ends?: "answered" | "refused";
}

export const model = "local";
/** The simulated model's first words. */
export const answer = "A toll gate stands";

const everyone: readonly ClientKind[] = ["further", "sdk"];
const heldSeconds = 25;
/** So many that a twentieth holds what an agent asks for. */
const dayTokens = 10_000_000;

/** One of the long questions does not fit any more. */
const contextBytes = 60_000;
const longQuestions = Array<string>(2).fill(`Count the words: ${"toll gate ".repeat(2000)}`);
const fullContext = { contextBytes, furtherQuestions: [...longQuestions, "Say hello again"] };
/**
 * Filled by answers: of what was asked, Codex keeps more than such a context holds. So long that what it asks for a summary is
 * refused too, and that the summary fits.
 */
const fullOnScreen = {
  contextBytes: 70_000,
  outputTokens: 4600,
  furtherQuestions: ["Go on"],
  typed: ["Say hello", "/compact", "Say hello again"],
};
const auto = { settings: { CLIENT_RULES: "auto" } };

/** @param used percent */
const footer = (used: number): Scenario => ({
  name: `${used} % of a day used up, on its screen`,
  limits: { tokens_per_day: dayTokens },
  prepare: async (world) => {
    world.backend().scriptNext(`usage=${(used * dayTokens) / 100},0`);
    await useUp(world);
  },
  typed: ["Say hello in three words"],
});

export const scenarios: readonly Scenario[] = [
  { name: "nothing special", alsoFor: everyone, ends: "answered" },
  {
    name: "requests of nobody are refused, and users are signed",
    only: "open-webui",
    limits: { users_from: "open-webui", users_secret: usersSecret, users_required: true },
    ends: "answered",
  },
  { name: "401: another key", wrongKey: true, ends: "refused" },
  { name: "403: the key may not use the model", limits: { allowed_models: ["other"] }, ends: "refused" },
  {
    name: "404: no such model",
    settings: { MODELS_FILE: "other: { backends: [one] }" },
    ends: "refused",
  },
  { name: "413: body too large", settings: { MAX_BODY_BYTES: "2000" }, ends: "refused" },
  {
    name: "429: requests of a minute",
    limits: { requests_per_minute: 1 },
    prepare: useUp,
    ends: "answered",
  },
  {
    name: "402, to Codex 429: tokens of a day",
    alsoFor: everyone,
    limits: { tokens_per_day: 60 },
    prepare: useUp,
    ends: "refused",
  },
  {
    name: "429: requests at once",
    settings: { PROXY_QUEUE_TIMEOUT: "1" },
    limits: { max_concurrency: 1 },
    prepare: (world) => hold(world, world.key, "forever"),
    ends: "refused",
  },
  {
    name: "503: the queue lasts too long",
    settings: { PROXY_MAX_CONCURRENCY: "1", PROXY_QUEUE_TIMEOUT: "1" },
    prepare: (world) => hold(world, world.gate.key, "forever"),
    ends: "refused",
  },
  {
    name: `queue of ${heldSeconds} s`,
    settings: { PROXY_MAX_CONCURRENCY: "1" },
    prepare: (world) => hold(world, world.gate.key, `${heldSeconds}s`),
    ends: "answered",
  },
  { name: "backend away for 8 s", backAfterMs: 8000, ends: "answered" },
  {
    name: "backend away for 8 s, PROXY_BACKEND_WAIT=60",
    settings: { PROXY_BACKEND_WAIT: "60" },
    backAfterMs: 8000,
    ends: "answered",
  },
  { name: "stream cut once", prepare: cutNext, ends: "answered" },
  {
    name: "ended by an administrator",
    alsoFor: everyone,
    framesPerSecond: 2,
    // Some send it again once, whatever error the stream ends with.
    meanwhile: (world, client) => endByAdmin(world, client, ({ tokensSent }) => tokensSent > 3),
  },
  {
    name: "ended by an administrator before its head",
    alsoFor: everyone,
    settings: { PROXY_SSE_KEEPALIVE: "1" },
    prepare: slowHeads,
    meanwhile: (world, client) => endByAdmin(world, client, ({ method }) => method === "POST", 2500),
  },
  {
    name: "head after 340 s",
    alsoFor: ["sdk"],
    prepare: (world, client) => slowHeads(world, client, "340s", 20),
  },
  {
    name: "head after 340 s, PROXY_SSE_KEEPALIVE=0",
    alsoFor: ["sdk"],
    settings: { PROXY_SSE_KEEPALIVE: "0" },
    prepare: (world, client) => slowHeads(world, client, "340s", 20),
  },
  ...[82, 89, 90, 96, 100].map(footer),
  { name: "context full, CLIENT_RULES=off", ...fullContext },
  { name: "context full, CLIENT_RULES=auto", ...fullContext, ...auto },
  { name: "context full, on its screen, CLIENT_RULES=off", ...fullOnScreen },
  { name: "context full, on its screen, CLIENT_RULES=auto", ...fullOnScreen, ...auto },
  { name: "context full in the stream, on its screen, CLIENT_RULES=off", ...fullOnScreen, fullInStream: true },
  {
    name: "context full in the stream, on its screen, CLIENT_RULES=auto",
    ...fullOnScreen,
    fullInStream: true,
    ...auto,
  },
  { name: "strict template, CLIENT_RULES=off", strict: true },
  { name: "strict template, CLIENT_RULES=auto", strict: true, ...auto, ends: "answered" },
];

export async function openWorld(scenario: Scenario): Promise<World> {
  const { settings = {}, limits = {}, outputTokens = 24, backAfterMs } = scenario;
  const port = findFreePort();
  let backend: Simulator | undefined;
  const start = (): void => {
    backend = startSimulator({
      port,
      models: [model],
      framesPerSecond: scenario.framesPerSecond ?? 0,
      isStrict: scenario.strict === true,
      ...(scenario.contextBytes !== undefined && { contextBytes: scenario.contextBytes }),
      isFullInStream: scenario.fullInStream === true,
      callsTools: false,
      defaultOutputTokens: outputTokens,
      maxOutputTokens: outputTokens,
    });
  };
  const timer = backAfterMs === undefined ? undefined : setTimeout(start, backAfterMs);
  if (timer === undefined) start();
  const folder = createTempFolder();
  const { MODELS_FILE: models, ...others } = settings;
  const file = folder.file("models.yaml");
  if (models !== undefined) {
    await Bun.write(file, `backends:\n  one: { url: "http://127.0.0.1:${port}" }\nmodels:\n  ${models}\n`);
  }
  const gate = await startTollgate({
    // As Help says for agents.
    PROXY_SSE_KEEPALIVE: "15",
    PROXY_HAN_GUARD: "off",
    ...(models === undefined ? { PROXY_UPSTREAM_URL: `http://127.0.0.1:${port}` } : { MODELS_FILE: file }),
    ...others,
  });
  const { key } = await gate.admin.createKey("client", { ...limits });
  return {
    gate,
    key,
    backend: () => {
      if (backend === undefined) throw new Error("The backend is away");
      return backend;
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await gate[Symbol.asyncDispose]();
      backend?.stop();
      folder.remove();
    },
  };
}

const chat = (world: World, key: string): Promise<Response> =>
  fetch(`${world.gate.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hi" }] }),
  });

async function useUp(world: World): Promise<void> {
  await (await chat(world, world.key)).text();
}

function cutNext({ backend }: World, { listsModels }: RealClient): void {
  if (listsModels === true) backend().scriptNext("");
  backend().scriptNext("reset@6");
}

/** Takes a place for that time. */
async function hold(world: World, key: string, time: string): Promise<void> {
  world.backend().scriptNext(`gap=${time}@1`);
  const response = await chat(world, key);
  void response.text().catch(() => undefined);
}

const atOnce = ({ asksForTitle }: RealClient): number => (asksForTitle === true ? 2 : 1);

/** For any request that it sends at once. */
function slowHeads({ backend }: World, client: RealClient, time = "300s", requests = atOnce(client)): void {
  if (client.listsModels === true) backend().scriptNext("");
  for (let at = 0; at < requests; at += 1) backend().scriptNext(`slow-head=${time}`);
}

/** @param afterMs so long after they are as they are wanted */
async function endByAdmin(
  { gate, backend }: World,
  client: RealClient,
  isDue: (request: SimulatedRequest) => boolean,
  afterMs = 0,
): Promise<void> {
  await pollUntil(() => backend().requests().filter(isDue).length >= atOnce(client), 300_000);
  await Bun.sleep(afterMs);
  for (const { id } of await gate.admin.listRunning()) await gate.admin.endRunning(id);
}
