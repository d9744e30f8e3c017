import { csvOf } from "../lib/csv.ts";
import { outcomeLabel } from "./request-format.ts";
import type { Grouping, RequestGroups, RunningRequest } from "./queries.ts";
import type { RequestFilterName } from "./request-filters.ts";

interface GroupingText {
  label: string;
  /** The filter that selects the requests of a group. */
  filter: RequestFilterName;
  /** Of requests that do not have it. */
  unnamed: string;
}

/** By what requests are grouped: the filters of the log. */
export const groupings = {
  program: { label: "Client program", filter: "client", unnamed: "No User-Agent" },
  client: { label: "Client version", filter: "client", unnamed: "No User-Agent" },
  class: { label: "Class", filter: "class", unnamed: "Not said" },
  key: { label: "API key", filter: "key", unnamed: "No key" },
  team: { label: "Team", filter: "team", unnamed: "No team" },
  user: { label: "User", filter: "user", unnamed: "No user" },
  model: { label: "Model", filter: "model", unnamed: "No model named" },
  backend: { label: "Backend", filter: "backend", unnamed: "Not sent" },
  path: { label: "Path", filter: "path", unnamed: "None" },
  status: { label: "Status", filter: "result", unnamed: "None" },
  outcome: { label: "Outcome", filter: "result", unnamed: "None" },
  address: { label: "Client address", filter: "address", unnamed: "None" },
  conversation: { label: "Conversation", filter: "conversation", unnamed: "Of no conversation" },
} as const satisfies Record<Grouping, GroupingText>;

export const findGrouping = (name: string | undefined): Grouping | undefined =>
  name !== undefined && Object.hasOwn(groupings, name) ? (name as Grouping) : undefined;

export type GroupRow = RequestGroups["rows"][number];

/** What a group is called, and the filter of its requests; undefined: none selects them. */
export function groupName(
  by: Grouping,
  { name, id }: Pick<GroupRow, "name" | "id">,
): { label: string; filter: string | undefined } {
  if (id !== null) {
    if (by === "team" || by === "user") return { label: name ?? `${groupings[by].label} ${id}`, filter: String(id) };
    return { label: by === "key" ? (name ?? `Deleted key ${id}`) : `…${String(id).slice(-6)}`, filter: String(id) };
  }
  if (name === null) return { label: groupings[by].unnamed, filter: by === "team" || by === "user" ? "0" : undefined };
  return { label: by === "outcome" ? outcomeLabel(name) : name, filter: name };
}

export type RunningGrouping = "key" | "team" | "user";

export interface RunningGroup {
  /** Null: of clients without a key, or of keys without a team or a user. */
  id: number | null;
  name: string;
  /** Where its limits are. */
  href: string;
  requests: readonly RunningRequest[];
}

/** Most requests first. */
export const groupRunning = (requests: readonly RunningRequest[], by: RunningGrouping): RunningGroup[] =>
  [...Map.groupBy(requests, (request) => request[`${by}_id`])]
    .map(([id, group]) => ({
      id,
      name: groupName(by, { name: group[0]?.[`${by}_name`] ?? null, id }).label,
      href: by === "team" ? `/keys/teams/${id}` : `/keys/${group[0]?.key_id}`,
      requests: group,
    }))
    .toSorted((a, b) => b.requests.length - a.requests.length);

/** `main took 69%, compaction took 31% of the input`; undefined if all requests are for one thing, or none says what for. */
export function classesSentence({ classes, total }: Pick<RequestGroups, "classes" | "total">): string | undefined {
  const named = classes.filter(({ class: name }) => name !== null);
  if (named.length === 0 || classes.length < 2 || total.prompt_tokens === 0) return undefined;
  const shares = named
    .slice(0, 3)
    .map((one) => `${one.class} took ${Math.round((one.prompt_tokens / total.prompt_tokens) * 100)}%`);
  return `${shares.join(", ")} of the input`;
}

/** Less than that of a client's input from a cache is low, unless it has sent little. */
const [lowShare, leastRequests, leastTokens] = [0.2, 10, 100_000];

/** The client of which most came from no cache, if that is too much. */
export function findLowCache(rows: readonly GroupRow[]): GroupRow | undefined {
  const low = rows.filter(
    ({ name, request_count: requests, prompt_tokens: input, from_cache_tokens: cached }) =>
      name !== null && requests >= leastRequests && input >= leastTokens && cached < input * lowShare,
  );
  return low.toSorted((a, b) => notCached(b) - notCached(a))[0];
}

const notCached = ({ prompt_tokens: input, from_cache_tokens: cached }: GroupRow): number => input - cached;

const columns = [
  "name",
  "id",
  "request_count",
  "prompt_tokens",
  "from_cache_tokens",
  "lost_count",
  "output_tokens",
  "cost",
  "cost_is_partial",
] as const satisfies readonly (keyof GroupRow)[];

/** The API's list, with its field names. */
export const groupsCsv = (rows: readonly GroupRow[]): string => csvOf(columns, rows);
