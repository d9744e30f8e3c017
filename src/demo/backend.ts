import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout } from "node:timers/promises";
import { addUsage, noUsage, type Usage, usageFields } from "../domain/usage.ts";
import { metricsResponse } from "../simulator/dialects/metrics.ts";
import { respond } from "../simulator/endpoints.ts";
import { errorResponse, isObject, type Frame } from "../simulator/simulated-response.ts";
import { defaultModel, type ModelOptions } from "../simulator/generation.ts";
import { minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { demoEmbeddingModel, demoModel, demoSmallModel } from "./client-behaviour.ts";
import { noise, type PlannedRequest } from "./traffic.ts";

/** How fast each simulated response comes to whoever tries the demo; one frame is one token. */
const visitorTokensPerSecond = 30;

const model: ModelOptions = { ...defaultModel, models: [demoModel, demoSmallModel, demoEmbeddingModel] };

/** Stands behind the demo. The header `x-simulate` of a request is a query string with its usage, speed and fault. */
export async function startDemoBackend(): Promise<{ url: string; stop: () => void }> {
  // Like the counters of an engine, for each model.
  const processed = new Map<string, Usage>(model.models.map((name) => [name, noUsage]));
  const server = createServer((request, response) => {
    // Fails if the client leaves, or if the response breaks off on demand.
    answer(request, response, processed).catch(() => response.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("The simulated backend has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  processed: Map<string, Usage>,
): Promise<void> {
  const { method = "", url = "", headers } = request;
  const [path = ""] = url.split("?", 1);
  const body = jsonOf(await text(request));
  const simulated = new URLSearchParams(String(headers["x-simulate"] ?? ""));
  const planned =
    path === "/metrics"
      ? metricsResponse([...processed])
      : respond({ method, path, json: () => body }, { usage: usageIn(simulated) }, model);
  const fault = simulated.get("fault");
  const sent = fault === "refuse" ? errorResponse(path, 503, "Overloaded") : planned;
  const { status, headers: head, usage, ...content } = sent ?? errorResponse(path, 404, "Not Found");
  const tokenMs = 1000 / (Number(simulated.get("tokensPerSecond")) || visitorTokensPerSecond);
  const wholeMs = content.frames === undefined ? (usage?.outputTokens ?? 0) * tokenMs : 0;
  await setTimeout((Number(simulated.get("firstByteMs")) || 0) + wholeMs);
  const isCut = fault === "reset" || (fault === "break" && content.frames === undefined);
  if (isCut) return void request.socket.destroy();
  const count = (tokens: Usage): void => {
    const name = isObject(body) ? String(body["model"]) : "";
    processed.set(name, addUsage(processed.get(name) ?? noUsage, tokens));
  };
  response.writeHead(status, Object.fromEntries(head));
  if (content.frames === undefined) {
    if (usage !== undefined) count(usage);
    return void response.end(content.body);
  }
  count({ inputTokens: usage?.inputTokens ?? 0, outputTokens: 0 });
  let tokens = 0;
  const onToken = (): void => {
    count({ inputTokens: 0, outputTokens: 1 });
    if (fault === "break" && ++tokens === 3) throw new Error("The simulated backend breaks off");
  };
  await pipeline(paced(content.frames, tokenMs, onToken), response);
}

/** Waits where a model would compute the next token. */
async function* paced(frames: Iterable<Frame>, tokenMs: number, onToken: () => void): AsyncGenerator<string> {
  let dueAt = performance.now();
  for (const frame of frames) {
    if (typeof frame === "string") yield frame;
    else {
      dueAt += tokenMs;
      await setTimeout(Math.max(0, dueAt - performance.now()));
      onToken();
    }
  }
}

function usageIn(simulated: URLSearchParams): Usage | undefined {
  if (!simulated.has("inputTokens")) return undefined;
  const given = usageFields.filter((field) => simulated.has(field));
  return { ...noUsage, ...Object.fromEntries(given.map((field) => [field, Number(simulated.get(field)) || 0])) };
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** How the simulated backend responds to a request. */
export interface Speed {
  /** Until it responds. */
  firstByteMs: number;
  tokensPerSecond: number;
}

/**
 * Responses take longer under load, and much longer in a slow phase. The same arguments always give the same speed.
 * @param load of the backend, 0 to 1
 */
export function speedOf({ startsAt, inputTokens }: Omit<PlannedRequest, "outputTokens">, load: number): Speed {
  const chance = (salt: number): number => noise(startsAt * 31 + salt);
  const slowness = slownessAt(Math.floor(startsAt / msPerMinute));
  // A few requests wait for much longer than the others.
  const bad = chance(1) < 0.03 ? 2 + 3 * chance(2) : 1;
  return {
    firstByteMs: Math.round((60 + inputTokens / 40) * (0.7 + 0.6 * chance(3)) * (1 + 2 * load * load) * slowness * bad),
    tokensPerSecond: Math.max(3, Math.round(((44 - 16 * load) * (0.85 + 0.3 * chance(4))) / slowness)),
  };
}

const halfDayMinutes = 12 * minutesPerHour;

/** By how much the backend is slower than usual: once in each half of a day, for half an hour or so, by two to five times. */
export function slownessAt(minute: number): number {
  const half = Math.floor(minute / halfDayMinutes);
  const begin = (0.5 + 10 * noise(half * 7 + 1)) * minutesPerHour;
  const length = 20 + 25 * noise(half * 7 + 2);
  const at = minute - half * halfDayMinutes;
  return at >= begin && at < begin + length ? 2 + 3 * noise(half * 7 + 3) : 1;
}
