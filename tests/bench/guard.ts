import { type Measured, readBudgets } from "../house/budgets.ts";
import { markdownTable } from "./table.ts";
import { median } from "./results.ts";
import type { Run, Workload } from "./workloads.ts";

/**
 * What features may not eat unsaid: how much of the processor Tollgate takes, relative to a bare Bun server in the same run.
 * By workload, the target that it is compared with; each ratio has a budget in CONTRIBUTING.
 */
export const guarded: Readonly<Record<string, string>> = {
  "small-32": "Bun passthrough",
  "agent-100": "Bun passthrough",
  "streams-100": "Bun transform",
};

/** A ratio may exceed its budget by so much: two runs of one build on a calm machine differ by a tenth, and runners are not calm. */
const margin = 0.25;

export const guardedName = ({ name }: Workload, beside: string): string => `\`${name}\` beside ${beside}`;

/** The median of the rounds' ratios: both sides of one were measured seconds apart. */
export function ratioOf({ figures: [figure] }: Workload, ours: readonly Run[], others: readonly Run[]): number {
  if (figure === undefined) throw new Error("The workload has no figure");
  const pairs = ours.flatMap((run, round) => {
    const other = others[round];
    return other === undefined ? [] : [figure.of(run) / figure.of(other)];
  });
  return median(pairs);
}

/** @throws Error for a ratio without a budget */
export async function withBudgets(ratios: ReadonlyMap<string, number>): Promise<Measured[]> {
  const budgets = await readBudgets("Budgets of speed");
  return [...ratios].map(([name, value]) => {
    const budget = budgets.find((one) => one.name === name);
    if (budget === undefined) throw new Error(`CONTRIBUTING.md, budgets of speed: ${name} has none`);
    return { name, max: budget.max, value };
  });
}

export const isSlower = ({ value, max }: Measured): boolean => !(value <= max * (1 + margin));

export const guardTable = (measured: readonly Measured[]): string =>
  markdownTable([
    ["CPU", "ratio", "budget", "is"],
    ...measured.map((one) => [one.name, one.value.toFixed(2), one.max.toFixed(2), isSlower(one) ? "over" : "within"]),
  ]);
