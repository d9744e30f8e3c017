import { agents, type Scenario, simulate } from "./routing/model.ts";
import { oracle, policies } from "./routing/policies.ts";
import { simulatePrefill } from "./routing/prefill.ts";
import { formatNumber, markdownTable } from "./table.ts";

// Rules of choosing a backend in a model of agents in front of engines with prefix caches, beside an oracle that knows every
// cache and takes the engine that is done first. Nothing in it depends on the speed of the machine.
// A small change moves whole runs: to see differences of a percent takes 48 seeds. The rule was chosen with the seeds 1 to 48,
// and 101 to 148 were looked at afterwards. `bun tests/bench/routing.ts [FIRST LAST]`

const [first, last] = [Number(process.argv[2] ?? 1), Number(process.argv[3] ?? 8)];
const seeds = Array.from({ length: last - first + 1 }, (_, number) => first + number);

const scenarios: Readonly<Record<string, Scenario>> = {
  "1.2 M tokens of cache each": agents,
  "0.5 M tokens of cache each": { ...agents, cacheTokens: 500_000 },
  "one away for 300 s": { ...agents, away: [600, 900] },
  "one at a third of the speed": { ...agents, speeds: [1 / 3, 1, 1, 1] },
  "one at half the speed": { ...agents, speeds: [1 / 2, 1, 1, 1] },
  "one at half the speed, 1 character a token": { ...agents, speeds: [1 / 2, 1, 1, 1], charactersPerToken: () => 1 },
  "one at a third, 2 characters a token": { ...agents, speeds: [1 / 3, 1, 1, 1], charactersPerToken: () => 2 },
  "1 or 4 characters a token": { ...agents, charactersPerToken: (session) => (session % 2 === 0 ? 4 : 1) },
  "half not streamed": { ...agents, whole: 0.5 },
  "one loses its cache unseen": { ...agents, forgets: 600 },
  "30 equal requests each minute": { ...agents, burst: 30 },
  "twice the sessions": { ...agents, sessions: 160 },
  "half the sessions, slower": { ...agents, sessions: 40, thinkSeconds: 15 },
};

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

for (const [name, scenario] of Object.entries(scenarios)) {
  const best = seeds.map((seed) => simulate(scenario, seed, oracle));
  const rows = Object.entries({ ...policies, oracle }).map(([policy, create]) => {
    const results = create === oracle ? best : seeds.map((seed) => simulate(scenario, seed, create));
    const shares = results.map(({ served }, index) => served / (best[index]?.served ?? served));
    return [
      policy,
      formatNumber(mean(results.map(({ served }) => served))),
      formatNumber(mean(shares)),
      formatNumber(Math.min(...shares)),
      `${formatNumber(100 * mean(results.map(({ cached }) => cached)))} %`,
      formatNumber(mean(results.map(({ p95 }) => p95))),
    ];
  });
  process.stdout.write(`\n${name}\n\n`);
  process.stdout.write(
    `${markdownTable([["rule", "served", "of the oracle's", "least", "cached", "p95 s"], ...rows])}\n`,
  );
}

const prompts = [
  ["one", { giants: 1, maxPrefillTokens: undefined }],
  ["four, off", { giants: 4, maxPrefillTokens: undefined }],
  ["four, max_prefill_tokens 16,000", { giants: 4, maxPrefillTokens: 16_000 }],
] as const;
const prefillRows = prompts.map(([name, scenario]) => {
  const results = seeds.map((seed) => simulatePrefill(scenario, seed));
  const meanOf = (value: "tokenP99" | "chatP95" | "served"): string =>
    formatNumber(mean(results.map((one) => one[value])));
  return [name, meanOf("tokenP99"), meanOf("chatP95"), meanOf("served")];
});
process.stdout.write("\nPrompts of 60,000 tokens that come at once\n\n");
process.stdout.write(
  `${markdownTable([["prompts", "p99 s between tokens", "p95 s of a short chat's first", "served"], ...prefillRows])}\n`,
);
