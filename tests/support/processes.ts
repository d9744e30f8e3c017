import type { Program, ProgramEnvironment } from "./program.ts";
import { type ProgramWithKey, startProgramWithKey } from "./program-with-key.ts";
import type { RawClient } from "./raw-client.ts";
import { pollUntil } from "./poll-until.ts";

export const processCount = 3;
export const metricsToken = "scraper";

/** Starts a program and waits until all three processes respond. */
export async function startProcesses(upstreamUrl: string, environment: ProgramEnvironment = {}) {
  const program = await startProgramWithKey(upstreamUrl, {
    METRICS_TOKEN: metricsToken,
    PROCESSES: String(processCount),
    LOG_FORMAT: "json",
    LOG_LEVEL: "info",
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

export async function stream({ sendRaw }: ProgramWithKey, script: string, key?: string): Promise<RawClient> {
  const messages = [{ role: "user", content: "Hi" }];
  const body = { model: "m", stream: true, stream_options: { include_usage: true }, max_tokens: 6, messages };
  const client = await sendRaw("/v1/chat/completions", body, { script, ...(key !== undefined && { key }) });
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
