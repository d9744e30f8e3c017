/** What a backend reports to have processed since its start. */
export interface BackendCounters {
  source: (typeof backends)[number][0];
  generatedTokens: number;
  promptTokens: number;
  /** When its process created the counters, in seconds since the epoch, if it reports that. It identifies the process. */
  startedAt?: number | undefined;
}

/** Their prefix, the counter of generated tokens, and those of prompts, which are added up. */
const backends = [
  ["vllm", "generation_tokens_total", ["prompt_tokens_total"]],
  ["sglang", "generation_tokens_total", ["prompt_tokens_total"]],
  // It counts what it took from its cache apart, and reports the sum to clients.
  ["llamacpp", "tokens_predicted_total", ["prompt_tokens_total", "prompt_tokens_cached_total"]],
] as const;

/** SGLang serves this gauge from its start, and token counters only when its first request has ended. */
const sglangGauge = "sglang:num_running_reqs";

/** Reads the token counters of vLLM, SGLang or llama.cpp out of metrics in the Prometheus text format. */
export function findBackendCounters(text: string): BackendCounters | undefined {
  for (const [source, generated, prompts] of backends) {
    const generatedTokens = sumOf(text, `${source}:${generated}`);
    if (generatedTokens === undefined) continue;
    const promptTokens = prompts.reduce((sum, name) => sum + (sumOf(text, `${source}:${name}`) ?? 0), 0);
    return { source, generatedTokens, promptTokens, startedAt: findStart(text, source) };
  }
  const isSglang = sumOf(text, sglangGauge) !== undefined;
  return isSglang ? { source: "sglang", generatedTokens: 0, promptTokens: 0 } : undefined;
}

/** Prefers the counters' own: that of the process is in hundredths of a second, which two may share. */
const findStart = (text: string, source: string): number | undefined =>
  leastOf(text, `${source}:generation_tokens_created`) ?? leastOf(text, "process_start_time_seconds");

/** Series that are added later do not change it. */
function leastOf(text: string, name: string): number | undefined {
  const values = valuesOf(text, name);
  return values.length === 0 ? undefined : values.reduce((least, value) => Math.min(least, value));
}

/** The sum over all labels; undefined if there is no such series. */
function sumOf(text: string, name: string): number | undefined {
  const values = valuesOf(text, name);
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + Math.round(value), 0);
}

/** Those of all series with that name. */
function valuesOf(text: string, name: string): number[] {
  const values: number[] = [];
  for (const line of text.split("\n")) {
    if (!line.startsWith(name)) continue;
    const value = /^(?:\{.*\})?\s+(\S+)(?:\s+-?\d+)?\s*$/.exec(line.slice(name.length))?.[1];
    const number = Number(value);
    if (value !== undefined && Number.isFinite(number) && number >= 0) values.push(number);
  }
  return values;
}
