/** What a backend reports to have processed since its start. */
export interface BackendCounters {
  source: "vllm" | "sglang";
  generatedTokens: number;
  promptTokens: number;
}

const sources = ["vllm", "sglang"] as const;

/** SGLang serves this gauge from its start, and token counters only when its first request has ended. */
const sglangGauge = "sglang:num_running_reqs";

/** Reads the token counters of vLLM or SGLang out of metrics in the Prometheus text format. */
export function findBackendCounters(text: string): BackendCounters | undefined {
  for (const source of sources) {
    const generatedTokens = sumOf(text, `${source}:generation_tokens_total`);
    if (generatedTokens === undefined) continue;
    return { source, generatedTokens, promptTokens: sumOf(text, `${source}:prompt_tokens_total`) ?? 0 };
  }
  const isSglang = sumOf(text, sglangGauge) !== undefined;
  return isSglang ? { source: "sglang", generatedTokens: 0, promptTokens: 0 } : undefined;
}

/** The sum over all labels; undefined if there is no such series. */
function sumOf(text: string, name: string): number | undefined {
  let sum: number | undefined;
  for (const line of text.split("\n")) {
    if (!line.startsWith(name)) continue;
    const value = /^(?:\{.*\})?\s+(\S+)(?:\s+-?\d+)?\s*$/.exec(line.slice(name.length))?.[1];
    const number = Number(value);
    if (value !== undefined && Number.isFinite(number) && number >= 0) sum = (sum ?? 0) + Math.round(number);
  }
  return sum;
}
