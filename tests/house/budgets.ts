import { join } from "node:path";
import { repositoryRoot } from "../support/import-table.ts";

/** A row of a table of budgets in CONTRIBUTING.md. */
export interface Budget {
  /** As it stands there. */
  name: string;
  max: number;
}

export interface Measured extends Budget {
  value: number;
  /** What was counted, if it is few. */
  names?: readonly string[];
}

const contributing = join(repositoryRoot, ".github/CONTRIBUTING.md");

/** A value may grow by this part of its budget before the budget has to be changed. */
const tolerance = 0.1;

/** @throws Error if the section or a row does not have the expected form */
export async function readBudgets(heading = "Budgets"): Promise<Budget[]> {
  const sections = (await Bun.file(contributing).text()).split(/^## /m);
  const section = sections.find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`CONTRIBUTING.md: no section "## ${heading}"`);
  const [, , ...rows] = section.match(/^\|.*\|$/gm) ?? [];
  return rows.map((row) => {
    const [, name, max] = /^\| (.+?) *\| *(\d+(?:\.\d+)?) \|$/.exec(row) ?? [];
    if (name === undefined || max === undefined) throw new Error(`CONTRIBUTING.md, budgets: ${row}`);
    return { name, max: Number(max) };
  });
}

export const isOver = ({ value, max }: Measured): boolean => value > max * (1 + tolerance);
