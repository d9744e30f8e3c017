// Parts of the handbook that are written from the code: what stands between `<!-- generated: NAME -->` and `<!-- end -->`.
// `bun run handbook` writes them into their pages; a test fails when one differs.
import { join } from "node:path";
import type { TObject, TSchema } from "@sinclair/typebox";
import { clients } from "../../console/src/start/agent-settings.ts";
import { limitKinds, type LimitKind } from "../../src/domain/limits.ts";
import { modelsFileSchema } from "../../src/config/models-schema.ts";
import { clientRules } from "../../src/domain/models.ts";
import { clientNeeds } from "../../src/proxy/rewrite/client-rules.ts";
import { type MemberRow, memberRows } from "../../src/proxy/rewrite/members-not-allowed.ts";
import { tableNames } from "../../src/store/schema/table-names.ts";
import { stagedFlushes } from "../../src/store/sqlite/staged-flushes.ts";
import { kinds, type Row } from "../../src/watching/state-rules.ts";
import { kindNames } from "../../src/watching/states.ts";
import { alerts } from "../../src/watching/prometheus-alerts.ts";
import { getTableName } from "drizzle-orm";
import { variableNames } from "../../src/config/config.ts";
import { openMetrics } from "../telemetry/open-metrics.ts";
import packageJson from "../../package.json" with { type: "json" };
import { repositoryRoot } from "./import-table.ts";

/** @returns the part's Markdown; `before` is what stands there now */
type Part = (before: string) => string | Promise<string>;

/** Each part by its name. A table of what has a name in the code and words in the handbook is one line here. */
export const parts: Readonly<Record<string, Part>> = {
  clone: () => cloneText(packageJson),
  settings: (before) => namedTable(before, variableNames),
  limits: (before) =>
    namedTable(before, Object.keys(limitKinds), (name) => [
      (limitKinds as Record<string, LimitKind>)[name]?.unit ?? "",
    ]),
  "client-rules": (before) => namedTable(before, clientRules),
  "client-needs": () =>
    table(
      ["client", "before", "needs", "known from"],
      clientNeeds.map(({ program, engines, rules, source }) => [
        code(program),
        engines?.join(", ") ?? "any",
        rules.map(code).join(", "),
        source,
      ]),
    ),
  "members-not-allowed": () =>
    table(
      ["member", "goes round", "refused", "since", "known from"],
      memberGroups((row) => row.rule !== "engine").map(([row, names]) => [
        names,
        row.rule,
        row.forms === "" ? "always" : row.forms,
        row.does,
        row.source,
      ]),
    ),
  "engine-members": () =>
    table(
      ["member", "what it does"],
      memberGroups((row) => row.rule === "engine").map(([row, names]) => [names, row.does]),
    ),
  "file-members": () => membersTable(modelsFileSchema),
  "backend-members": () => membersTable(modelsFileSchema.properties.backends.patternProperties),
  "model-members": () => membersTable(modelsFileSchema.properties.models.patternProperties),
  tables: (before) => namedTable(before, [...tableNames, getTableName(stagedFlushes)]),
  states: (before) =>
    namedTable(before, kindNames, (kind) => {
      const { of, remedy } = (kinds as Record<string, Row>)[kind] ?? { of: "", remedy: "" };
      return [of, remedy];
    }),
  alerts: () =>
    table(
      ["alert", "fires after", "tells"],
      alerts.map(({ name, for: after, summary, description }) => [
        code(name),
        after === "0m" ? "at once" : after,
        `${summary}. ${description}`,
      ]),
    ),
  metrics: metricsTable,
  "quick-starts": () =>
    clients(sampleValues)
      .map(({ label, note, text }) => `## ${label}\n\n${wrapped(note)}\n\n\`\`\`text\n${text}\n\`\`\``)
      .join("\n\n"),
};

/** Rows with the names of those that share them. */
const memberGroups = (isMeant: (row: MemberRow) => boolean): [MemberRow, string][] =>
  [...Map.groupBy(Object.entries<MemberRow>(memberRows), ([, row]) => row)]
    .filter(([row]) => isMeant(row))
    .map(([row, members]) => [row, members.map(([name]) => code(name)).join(", ")]);

/** What the handbook's settings of agents are filled with. */
export const sampleValues = {
  origin: "https://gate.example.com",
  key: "KEY",
  model: "MODEL",
  contextTokens: 202_752,
  outputTokens: 16_384,
} as const;

const wrapped = (text: string): string => text.replaceAll(/(.{1,110})(?: |$)/g, "$1\n").trimEnd();

/** The page with all of its parts written anew. @throws Error if it has a part that is not listed above */
export async function withParts(page: string): Promise<string> {
  let written = page;
  for (const [whole, name = "", before = ""] of page.matchAll(partPattern)) {
    const part = parts[name];
    if (part === undefined) throw new Error(`The handbook has a part ${name}, which nothing writes`);
    const text = await part(before.trim());
    written = written.replace(whole, () => `<!-- generated: ${name} -->\n\n${text}\n\n<!-- end -->\n`);
  }
  return written;
}

/** @param project `package.json`, whose `repository` is the address where it has one */
export function cloneText({ repository }: { name: string; repository?: { url: string } }): string {
  const address = repository?.url.replace(/^git\+/, "");
  const how = address === undefined ? "Clone this repository" : `Run \`git clone ${address}\``;
  return `${how} and run \`npm run demo\` in it, or download one file from its releases.`;
}

const partPattern = /^<!-- generated: ([a-z-]+) -->\n(.*?)^<!-- end -->\n/gms;

export const partNamesOf = (page: string): string[] => [...page.matchAll(partPattern)].map(([, name = ""]) => name);

/**
 * A table of names, in the order in which it has them now; new ones come last. The columns after the name come from the code,
 * as far as `columnsOf` has them; the others keep their words, and are empty for a new name.
 */
function namedTable(before: string, names: readonly string[], columnsOf = (_name: string): string[] => []): string {
  const [head = [], , ...rows] = before.split("\n").map(cellsOf);
  const words = new Map(rows.map((cells) => [cells[0]?.replaceAll("`", "") ?? "", cells]));
  const inOrder = [...words.keys(), ...names].filter(
    (name, at, all) => names.includes(name) && all.indexOf(name) === at,
  );
  return table(
    head,
    inOrder.map((name) => {
      const given = columnsOf(name);
      return head.map((_, at) => (at === 0 ? code(name) : (given[at - 1] ?? words.get(name)?.[at] ?? "")));
    }),
  );
}

const cellsOf = (line: string): string[] =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

/** Members of a schema with their own descriptions, or of the one schema of all values of a map. */
function membersTable(schema: Record<string, TSchema> | TObject): string {
  const object = "properties" in schema ? schema : Object.values(schema)[0];
  const members = Object.entries((object?.["properties"] ?? {}) as Record<string, TSchema>);
  return table(
    ["member", "default", "says"],
    members.map(([name, { default: byDefault, description = "" }]) => [
      code(name),
      byDefault === undefined ? "" : code(String(byDefault)),
      description,
    ]),
  );
}

/** Help texts are the metrics' own. A server has these series with every setting that adds some. */
async function metricsTable(): Promise<string> {
  const queue = { places: 1, depth: () => ({ waiting: 0, running: 0 }) };
  using metrics = openMetrics({ perKey: true, backends: () => Promise.resolve([]), queue });
  const text = await metrics.text();
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
  const rows = [...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map(([, name = "", help = ""]) => [
    code(name),
    types.get(name) ?? "",
    help,
  ]);
  return table(
    ["metric", "type", "tells"],
    rows.toSorted(([left = ""], [right = ""]) => left.localeCompare(right)),
  );
}

const code = (text: string): string => `\`${text}\``;

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

if (import.meta.main) {
  const { pages, textOfPage } = await import("./manual.ts");
  for (const page of pages) {
    const file = join(repositoryRoot, page);
    const written = await withParts(textOfPage(page));
    if (written !== textOfPage(page)) await Bun.write(file, written);
  }
}
