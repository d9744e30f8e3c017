import { csv } from "../lib/csv.ts";
import { percentChange } from "../lib/format.ts";
import type { Cost } from "../lib/money.ts";
import { type FilterName, filterNames } from "./usage-filters.ts";

/** By what the table of usage groups; a client by the request log. */
export const groups = {
  team: "Team",
  key: "Key",
  user: "User",
  model: "Model",
  key_model: "Key and model",
  tag: "Tag",
  owner: "Owner",
  day: "Day",
  client: "Client",
} as const;
export type Group = keyof typeof groups;

export const isFilterName = (group: string): group is FilterName => filterNames.some((name) => name === group);

/** Sums of a row, of all rows, or of the period before. */
export interface Sums extends Cost {
  request_count: number;
  prompt_tokens: number;
  from_cache_tokens: number;
  output_tokens: number;
}

/** A row of the API's costs; what it is not of is null. */
type CostRow = Sums &
  Record<"key_id" | "team_id" | "user_id", number | null> &
  Record<"date" | "model" | "tag" | "owner" | "key_name" | "team_name" | "user_name", string | null>;

export interface ReportRow extends Sums {
  /** Unique in its report, and the same in that of the period before. */
  id: string;
  /** Of what it is, besides its id. */
  name: string;
  /** For a row by key and model. */
  model?: string;
  /** What leads to it alone: the value of the filter of its group, or a day. */
  value?: string;
}

/** The API's names are empty where there is none, and `other` beyond those that are kept for a day. */
export function modelLabel(model: string): string {
  if (model === "") return "No model named";
  return model === "other" ? "Other models" : model;
}

const keyLabel = ({ key_id: id, key_name: name }: CostRow): string => name || `Deleted key ${id}`;

export function reportRow(row: CostRow, by: Exclude<Group, "client">): ReportRow {
  const named = (id: number | null, name: string | null, kind: string): Omit<ReportRow, keyof Sums> => ({
    id: String(id),
    name: id === 0 ? `No ${kind}` : name || `Deleted ${kind} ${id}`,
    value: String(id),
  });
  const text = (value: string | null, label: string): Omit<ReportRow, keyof Sums> => ({
    id: value ?? "",
    name: label,
    ...(value && { value }),
  });
  const of = {
    team: () => named(row.team_id, row.team_name, "team"),
    user: () => named(row.user_id, row.user_name, "user"),
    key: () => named(row.key_id, row.key_name, "key"),
    model: () => text(row.model, modelLabel(row.model ?? "")),
    key_model: () => ({
      id: `${row.key_id} ${row.model}`,
      name: keyLabel(row),
      model: modelLabel(row.model ?? ""),
      value: String(row.key_id),
    }),
    tag: () => text(row.tag, row.tag || "No tag"),
    owner: () => text(row.owner, row.owner || "No owner"),
    day: () => text(row.date, row.date ?? ""),
  };
  return { ...of[by](), ...sumsOf(row) };
}

export const sumsOf = (row: Sums): Sums => ({
  request_count: row.request_count,
  prompt_tokens: row.prompt_tokens,
  from_cache_tokens: row.from_cache_tokens,
  output_tokens: row.output_tokens,
  cost: row.cost,
  cost_is_partial: row.cost_is_partial,
});

/** By what the request log knows too, under its names. */
export const logGroups = { client: "program", key: "key", team: "team", user: "user", model: "model" } as const;
export type LogGroup = keyof typeof logGroups;
export const isLogGroup = (group: Group): group is LogGroup => Object.hasOwn(logGroups, group);

/** A row of the request log's groups. */
export function loggedRow(row: Sums & { id: number | null; name: string | null }, by: LogGroup): ReportRow {
  const { name } = row;
  if (by === "client") return { id: name ?? "", name: name ?? "No User-Agent", ...sumsOf(row) };
  const id = row.id ?? 0;
  const ids = { key_id: id, team_id: id, user_id: id };
  const names = { key_name: name, team_name: name, user_name: name, model: name ?? "" };
  return reportRow({ ...ids, ...names, date: null, tag: null, owner: null, ...sumsOf(row) }, by);
}

/** Most tokens first; days stay in their order. */
export const mostFirst = (rows: readonly ReportRow[], by: Group): ReportRow[] =>
  by === "day" ? [...rows] : rows.toSorted((a, b) => tokensOf(b) - tokensOf(a));

export const tokensOf = (sums: Sums): number => sums.prompt_tokens + sums.output_tokens;

export const noUsage: Sums = {
  request_count: 0,
  prompt_tokens: 0,
  from_cache_tokens: 0,
  output_tokens: 0,
  cost: null,
  cost_is_partial: false,
};

/** Of costs, where both are known; else of tokens. Undefined: there was nothing before, or there is nothing to compare. */
export function changeOf(now: Sums, before: Sums | undefined): string | undefined {
  if (before === undefined) return undefined;
  const areKnown = now.cost !== null && before.cost !== null && before.cost > 0;
  return areKnown ? percentChange(now.cost ?? 0, before.cost ?? 0) : percentChange(tokensOf(now), tokensOf(before));
}

/** What the table shows, under the API's names. */
export function reportCsv(
  rows: readonly ReportRow[],
  by: Group,
  before: ReadonlyMap<string, Sums> | undefined,
): string {
  const hasId = by === "team" || by === "user" || by === "key" || by === "key_model";
  const group = by === "key_model" ? "key" : by;
  const names = [
    ...(hasId ? [`${group}_id`, `${group}_name`] : [by === "day" ? "date" : group]),
    ...(by === "key_model" ? ["model"] : []),
  ];
  const numbers = ["request_count", "prompt_tokens", "from_cache_tokens", "output_tokens"] as const;
  const header = [...names, ...numbers, "cost", "cost_is_partial"];
  return csv(
    before === undefined ? header : [...header, "tokens_before", "cost_before"],
    rows.map((row) => {
      const earlier = before?.get(row.id) ?? noUsage;
      return [
        ...(hasId ? [row.value ?? "", row.name] : [row.value ?? (by === "client" ? row.name : "")]),
        ...(by === "key_model" ? [row.model ?? ""] : []),
        ...numbers.map((name) => row[name]),
        row.cost ?? "",
        String(row.cost_is_partial),
        ...(before === undefined ? [] : [tokensOf(earlier), earlier.cost ?? ""]),
      ];
    }),
  );
}
