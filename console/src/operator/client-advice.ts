import { compact, count, plural } from "../lib/format.ts";
import type { ClientRules } from "../queries.ts";

type Advice = ClientRules["rows"][number];

const engineNames: Readonly<Record<Advice["engines"][number], string>> = {
  vllm: "vLLM",
  sglang: "SGLang",
  "llama.cpp": "llama.cpp",
  ollama: "Ollama",
};

/** What clients met for want of a rule, and which one: one sentence for each client and backend. */
export const adviceSentences = (rows: readonly Advice[]): string[] =>
  rows.map((row) => {
    const met = [...readAnew(row), ...refused(row)].join(" and ");
    const names = row.engines.map((name) => engineNames[name]).join(" and ");
    return `Of ${plural(row.request_count, "request")} of ${row.client}, ${met}. For ${names}, ${listed(row.rules)}.`;
  });

function readAnew({ read_anew_count: requests, read_anew_tokens: tokens }: Advice): string[] {
  if (requests === 0) return [];
  if (tokens === null) return [`${count(requests)} may have been read anew (the backend does not report its cache)`];
  return [`${count(requests)} had ${compact(tokens)} tokens read anew`];
}

const refused = ({ refused_count: requests }: Advice): string[] =>
  requests === 0 ? [] : [`the backend refused ${count(requests)}`];

const listed = (rules: Advice["rules"]): string =>
  rules.length === 1 ? `the rule ${rules.join()} helps it` : `the rules ${rules.join(" and ")} help it`;

/** The programs, by how their names begin, that give up a stream that is silent for minutes. */
const agents = { "claude-cli": "Claude Code", codex: "Codex", opencode: "opencode" };

/** What to tell an operator whose server sends no heartbeats, if agents are among the programs that use it. */
export function silentStreamsProblem(programs: readonly { name: string | null }[]): string | undefined {
  const seen = Object.entries(agents).filter(([begins]) =>
    programs.some(({ name }) => name?.toLowerCase().startsWith(begins)),
  );
  if (seen.length === 0) return undefined;
  const labels = seen.map(([, label]) => label).join(" and ");
  return `${labels} sent requests in the last 24 hours, and agents give up streams that are silent for minutes. Set PROXY_SSE_KEEPALIVE=15.`;
}
