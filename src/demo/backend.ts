import { parseJson } from "../domain/json.ts";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout } from "node:timers/promises";
import { addUsage, noUsage, type Usage, usageFields } from "../domain/usage.ts";
import { minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { demoEmbeddingModel, demoModel, demoSmallModel } from "./personas.ts";
import { errorOf, isObject, respond, type StreamedResponse } from "./model.ts";
import { noise, type PlannedRequest } from "./traffic.ts";

/** How fast each simulated response comes to whoever tries the demo. */
const visitorTokensPerSecond = 30;

const models = [demoModel, demoSmallModel, demoEmbeddingModel];

/** Stands behind the demo. The header `x-simulate` of a request is a query string with its usage, speed and fault. */
export async function startDemoBackend(): Promise<{ url: string; stop: () => void }> {
  // Like the counters of an engine, for each model.
  const processed = new Map<string, Usage>(models.map((name) => [name, noUsage]));
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
  const body = parseJson(await text(request));
  if (path === "/metrics") return void response.end(countersOf(processed));
  const simulated = new URLSearchParams(String(headers["x-simulate"] ?? ""));
  const fault = simulated.get("fault");
  const sent =
    fault === "refuse"
      ? errorOf(path, 503, "Overloaded")
      : respond({ method, path, body }, usageIn(simulated), [...processed.keys()]);
  const { usage = noUsage } = sent;
  const tokenMs = 1000 / (Number(simulated.get("tokensPerSecond")) || visitorTokensPerSecond);
  await setTimeout((Number(simulated.get("firstByteMs")) || 0) + ("body" in sent ? usage.outputTokens * tokenMs : 0));
  if (fault === "reset" || (fault === "break" && "body" in sent)) return void request.socket.destroy();
  const count = (tokens: Usage): void => {
    const name = isObject(body) ? String(body["model"]) : "";
    processed.set(name, addUsage(processed.get(name) ?? noUsage, tokens));
  };
  const type = "body" in sent ? "application/json" : "text/event-stream; charset=utf-8";
  response.writeHead(sent.status, { "content-type": type });
  if ("body" in sent) {
    if (sent.usage !== undefined) count(usage);
    return void response.end(JSON.stringify(sent.body));
  }
  count({ inputTokens: usage.inputTokens, outputTokens: 0 });
  let tokens = 0;
  const onToken = (): void => {
    count({ inputTokens: 0, outputTokens: 1 });
    if (fault === "break" && ++tokens === 3) throw new Error("The simulated backend breaks off");
  };
  await pipeline(paced(sent, tokenMs, onToken), response);
}

/** Waits where a model would compute the next token. */
async function* paced(
  { events, texts }: StreamedResponse,
  tokenMs: number,
  onToken: () => void,
): AsyncGenerator<string> {
  yield events.opening;
  let dueAt = performance.now();
  for (const token of texts) {
    dueAt += tokenMs;
    await setTimeout(Math.max(0, dueAt - performance.now()));
    onToken();
    yield events.token(token);
  }
  yield events.closing;
}

/** vLLM's counters of tokens, as its `/metrics` has them. */
const countersOf = (processed: ReadonlyMap<string, Usage>): string =>
  [...processed]
    .map(
      ([model, { inputTokens, outputTokens }]) =>
        `vllm:prompt_tokens_total{model_name="${model}"} ${inputTokens}\n` +
        `vllm:generation_tokens_total{model_name="${model}"} ${outputTokens}\n`,
    )
    .join("");

function usageIn(simulated: URLSearchParams): Usage | undefined {
  if (!simulated.has("inputTokens")) return undefined;
  const given = usageFields.filter((field) => simulated.has(field));
  return { ...noUsage, ...Object.fromEntries(given.map((field) => [field, Number(simulated.get(field)) || 0])) };
}

/**
 * How the simulated backend responds: it takes longer under load, and much longer in a slow phase. The same arguments always
 * give the same speed.
 * @param load of the backend, 0 to 1
 */
export function speedOf({ startsAt, inputTokens }: Omit<PlannedRequest, "outputTokens">, load: number) {
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
