import { type Measured, readBudgets } from "../house/budgets.ts";
import { markdownTable } from "./table.ts";
import { median } from "./results.ts";
import { responseCount, type Run, type Workload } from "./workloads.ts";

/**
 * What features may not eat unsaid: how much of the processor Tollgate takes, relative to a bare Bun server in the same run.
 * By workload, the target that it is compared with. How often a request touches new memory and its threads change depends
 * less on what else the machine does. Each measure has a budget in CONTRIBUTING.
 */
export const guarded: Readonly<Record<string, string>> = {
  "small-32": "Bun passthrough",
  "agent-100": "Bun passthrough",
  "agent-400": "Bun passthrough",
  "streams-100": "Bun transform",
};

/** A measure may exceed its budget by so much: two runs of one build on a calm machine differ by a tenth, and runners are not calm. */
const margin = 0.25;

/** In the order of the budgets. Instructions have none: few virtual machines count them. */
export const guardedNames = ({ name }: Workload, beside: string) => ({
  cpu: `CPU, \`${name}\` beside ${beside}`,
  faults: `page faults per request, \`${name}\``,
  switches: `context switches per request, \`${name}\``,
});

/** By the name of the measure. */
export function measure(
  workload: Workload,
  beside: string,
  ours: readonly Run[],
  others: readonly Run[],
): [string, number][] {
  const { cpu, faults, switches } = guardedNames(workload, beside);
  // What else the machine does mostly adds.
  const leastPerRequest = (of: (run: Run) => number): number =>
    Math.min(...ours.map((run) => of(run) / responseCount(run.result)));
  return [
    [cpu, ratioOf(workload, ours, others)],
    [faults, leastPerRequest((run) => run.pageFaults)],
    [switches, leastPerRequest((run) => run.contextSwitches)],
  ];
}

export const instructionsLine = ({ name }: Workload, ours: readonly Run[], others: readonly Run[]): string => {
  const pairs = pairsOf(({ instructions }) => instructions ?? Number.NaN, ours, others).filter(
    (one) => !Number.isNaN(one),
  );
  return `instructions, \`${name}\`: ${pairs.length === 0 ? "not counted by this kernel" : median(pairs).toFixed(2)}`;
};

/** The median of the rounds' ratios: both sides of one were measured seconds apart. */
export function ratioOf({ figures: [figure] }: Workload, ours: readonly Run[], others: readonly Run[]): number {
  if (figure === undefined) throw new Error("The workload has no figure");
  return median(pairsOf(figure.of, ours, others));
}

const pairsOf = (of: (run: Run) => number, ours: readonly Run[], others: readonly Run[]): number[] =>
  ours.flatMap((run, round) => {
    const other = others[round];
    return other === undefined ? [] : [of(run) / of(other)];
  });

/** @throws Error for a measure without a budget */
export async function withBudgets(measures: ReadonlyMap<string, number>): Promise<Measured[]> {
  const budgets = await readBudgets("Budgets of speed");
  return [...measures].map(([name, value]) => {
    const budget = budgets.find((one) => one.name === name);
    if (budget === undefined) throw new Error(`CONTRIBUTING.md, budgets of speed: ${name} has none`);
    return { name, max: budget.max, value };
  });
}

export const isSlower = ({ value, max }: Measured): boolean => !(value <= max * (1 + margin));

export const guardTable = (measured: readonly Measured[]): string =>
  markdownTable([
    ["measure", "value", "budget", "is"],
    ...measured.map((one) => [one.name, one.value.toFixed(2), one.max.toFixed(2), isSlower(one) ? "over" : "within"]),
  ]);
