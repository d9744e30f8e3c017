import { type Program, type ProgramEnvironment, startProgram } from "./program.ts";
import { connectRaw, type RawClient } from "./raw-client.ts";
import { pollUntil } from "./poll-until.ts";

export const processCount = 3;
export const metricsToken = "scraper";

/** Starts a program and waits until all three processes respond. */
export async function startProcesses(upstreamUrl: string, environment: ProgramEnvironment = {}): Promise<Program> {
  const program = await startProgram({
    PROXY_UPSTREAM_URL: upstreamUrl,
    ADMIN_PASSWORD: "password",
    METRICS_TOKEN: metricsToken,
    PROCESSES: String(processCount),
    LOG_FORMAT: "json",
    ...environment,
  });
  await pollUntil(async () => (await scrape(program)).tollgate_processes === processCount);
  return program;
}

/** Each request uses a new connection, so that the kernel may give it to any process. */
export const freshly = { headers: { connection: "close" } };

/** Unlabelled series, and the sum of `tollgate_requests_total`. */
export async function scrape({ adminUrl }: Pick<Program, "adminUrl">): Promise<Record<string, number>> {
  const headers = { ...freshly.headers, authorization: `Bearer ${metricsToken}` };
  const text = await (await fetch(`${adminUrl}/metrics`, { headers })).text();
  const metrics: Record<string, number> = { requests: 0 };
  for (const [, name = "", labels, value] of text.matchAll(/^(\w+)(\{.*\})? (\S+)$/gm)) {
    if (labels === undefined) metrics[name] = Number(value);
    else if (name === "tollgate_requests_total") metrics["requests"] = (metrics["requests"] ?? 0) + Number(value);
  }
  return metrics;
}

export async function stream({ url }: Program, key: string, script: string): Promise<RawClient> {
  const client = await connectRaw(url);
  const messages = [{ role: "user", content: "Hi" }];
  const body = { model: "m", stream: true, stream_options: { include_usage: true }, max_tokens: 6, messages };
  const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": script };
  client.request("POST", "/v1/chat/completions", headers, JSON.stringify(body));
  await client.nextEvent();
  return client;
}

/** The entries of its log. */
export const logged = (program: Program): Record<string, unknown>[] =>
  program
    .stdout()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
