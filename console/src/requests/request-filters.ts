import { type Outcome, outcomes } from "../../../src/domain/requests.ts";
import { parseSeoulMinute, seoulMinute, seoulTimestamp } from "../lib/seoul-time.ts";
import { type TimeSpan } from "../lib/time-range.ts";

/** What the URL selects requests by, in the order in which it is offered, and what that is called. */
export const requestFilters = {
  key: "API key",
  /** 0: none. */
  team: "Team",
  user: "User’s id",
  /** `failed`, `without_usage`, a class such as `5xx`, a status, or an outcome. */
  result: "Result",
  model: "Model",
  backend: "Backend",
  path: "Path",
  client: "Client program",
  class: "Class",
  address: "Client address",
  conversation: "Conversation",
  id: "Request id",
  trace: "Trace id",
  /** Milliseconds. */
  slower: "Longer than (seconds)",
  /** Minutes in Seoul time, as in the URL of a zoom. */
  since: "Ended from",
  until: "Ended before",
} as const;

export type RequestFilterName = keyof typeof requestFilters;
export type RequestParameters = { [Name in RequestFilterName]?: string | undefined };

export const filterNames = Object.keys(requestFilters) as RequestFilterName[];

/** The filters of a stretch of a chart. */
export const spanFilters = ({ from, to }: TimeSpan): { since: string; until: string } => ({
  since: seoulMinute(from),
  until: seoulMinute(to),
});

/** The parameters of the API. */
export type RequestFilterQuery = ReturnType<typeof requestFilterQuery>;

/** Parameters that the API would refuse are left out: a link from elsewhere must not break the page. */
export function requestFilterQuery(parameters: RequestParameters) {
  return withoutUndefined({
    key_id: positiveInteger(parameters.key),
    team_id: parameters.team === "0" ? 0 : positiveInteger(parameters.team),
    user_id: parameters.user === "0" ? 0 : positiveInteger(parameters.user),
    ...resultQuery(parameters.result),
    model: text(parameters.model),
    backend: text(parameters.backend),
    path: text(parameters.path),
    client: text(parameters.client),
    class: text(parameters.class),
    address: text(parameters.address),
    conversation: positiveInteger(parameters.conversation, Number.MAX_SAFE_INTEGER),
    request_id: text(parameters.id),
    trace_id: text(parameters.trace),
    min_duration_ms: positiveInteger(parameters.slower),
  });
}

function resultQuery(result: string | undefined): {
  failed?: "true";
  without_usage?: "true";
  status?: string;
  outcome?: Outcome;
} {
  if (result === "failed" || result === "without_usage") return { [result]: "true" };
  const outcome = outcomes.find((known) => known === result);
  if (outcome !== undefined) return { outcome };
  return result !== undefined && /^[1-5](xx|\d\d)$/.test(result) ? { status: result } : {};
}

/** The time range. */
export function requestTimeQuery({ since, until }: RequestParameters): { since?: string; until?: string } {
  return withoutUndefined({ since: timestamp(since), until: timestamp(until) });
}

function timestamp(minute: string | undefined): string | undefined {
  const ms = minute === undefined ? undefined : parseSeoulMinute(minute);
  return ms === undefined ? undefined : seoulTimestamp(ms);
}

const maxLength = 512;

const text = (value: string | undefined): string | undefined => value?.trim().slice(0, maxLength) || undefined;

function positiveInteger(value: string | undefined, maximum = 2_000_000_000): number | undefined {
  const number = Number(value);
  return Number.isInteger(number) && number > 0 && number <= maximum ? number : undefined;
}

type Defined<T> = { [Name in keyof T]?: Exclude<T[Name], undefined> };

function withoutUndefined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
