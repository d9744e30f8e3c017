// The request log, a row for each field: its table in the database, what is read from that, the API and the console's CSV
// follow it. What a loop cannot know is elsewhere: the value of a request (`store/requests/row.ts`), and the migrations.

import { choiceReasons } from "./backends.ts";
import { cacheLosses } from "./cache-loss.ts";
import { type RequestChange, waits } from "./requests.ts";
import { listCounters, type SnakeCase, snakeCase } from "./usage.ts";

interface Values {
  text: string;
  integer: number;
  count: number;
  milliseconds: number;
  /** Epoch milliseconds; in the API ISO 8601. */
  time: number;
  flag: boolean;
  changes: RequestChange[];
}

interface Field {
  field: string;
  kind: keyof Values;
  nullable?: true;
  /** In the API and the CSV, if it is not the field's own name in snake case. Null: it is in neither. */
  name?: string | null;
  /** In the database, if it is not the field's own name. Null: it has no column of its own. */
  column?: string | null;
  /** For the API's users. */
  description?: string;
}

/**
 * In the order of columns and of the API's members. New ones come last: flushes that the version before has staged hold their
 * values in this order.
 */
const requestFields = [
  { field: "endedAt", kind: "time" },
  { field: "requestId", kind: "text" },
  { field: "keyId", kind: "integer", nullable: true },
  // The last one, if the key is deleted.
  { field: "keyName", kind: "text", nullable: true, column: null },
  { field: "address", kind: "text" },
  { field: "client", kind: "text", nullable: true, description: "Program and version: the first word of User-Agent" },
  {
    field: "requestClass",
    kind: "text",
    nullable: true,
    name: "class",
    description: "What it is for, as far as its client says or shows that, such as subagent",
  },
  { field: "method", kind: "text" },
  { field: "path", kind: "text" },
  { field: "modelAsked", kind: "text", nullable: true },
  { field: "modelSent", kind: "text", nullable: true },
  { field: "backend", kind: "text", nullable: true, description: "Null if the request was not sent to a backend" },
  {
    field: "reason",
    kind: "text",
    nullable: true,
    description: `Why it went to that backend: ${choiceReasons.join(", ")}`,
  },
  { field: "status", kind: "integer" },
  { field: "outcome", kind: "text" },
  { field: "code", kind: "text", nullable: true },
  { field: "cause", kind: "text", nullable: true },
  // Bits, from which the fields of these kinds are read: see `store/requests/row.ts`.
  { field: "flags", kind: "integer", name: null },
  { field: "streamed", kind: "flag", column: null },
  ...listCounters((field) => ({ field, kind: "count", nullable: true }) as const),
  {
    field: "estimatedTokens",
    kind: "count",
    nullable: true,
    description: "Charged to the limits of tokens of the key, because the backend reported none",
  },
  {
    field: "expectedCachedTokens",
    kind: "count",
    nullable: true,
    description: "Of the input, what was expected to come from the backend's cache; null if there was no choice",
  },
  {
    field: "conversation",
    kind: "integer",
    nullable: true,
    description: "The same for all turns of a conversation; null if there is one backend, or it is of none",
  },
  {
    field: "cacheLoss",
    kind: "text",
    nullable: true,
    description: `Why less than half of what the turn before left in a cache came from it: ${cacheLosses.join(", ")}; null if more did, or that is not known`,
  },
  {
    field: "uncounted",
    kind: "flag",
    column: null,
    description: "It was cut before the backend reported its output, which is counted nowhere",
  },
  {
    field: "sends",
    kind: "count",
    nullable: true,
    description: "How often it was handed to a connection; null: once, or not at all",
  },
  { field: "queueMs", kind: "milliseconds", nullable: true, column: "queueUs" },
  { field: "upstreamMs", kind: "milliseconds", nullable: true, column: "upstreamUs" },
  { field: "firstByteMs", kind: "milliseconds", nullable: true, column: "firstByteUs" },
  { field: "durationMs", kind: "milliseconds", column: "durationUs" },
  { field: "responseBytes", kind: "count", nullable: true },
  { field: "changes", kind: "changes", column: null },
  { field: "maxTokensFrom", kind: "count", nullable: true },
  { field: "maxTokensTo", kind: "count", nullable: true },
  // 1 if it did not complete with a status below 400.
  { field: "isFailed", kind: "integer", name: null },
  {
    field: "message",
    kind: "text",
    nullable: true,
    description:
      "The backend's own sentence, if its response has a status of success and says that it failed; Tollgate's, if a limit refused it",
  },
  { field: "teamId", kind: "integer", nullable: true, description: "The key's when it began" },
  // The last one, if the team is deleted.
  { field: "teamName", kind: "text", nullable: true, column: null },
  {
    field: "userId",
    kind: "integer",
    nullable: true,
    description: "Whose request it was, if its key tells users apart",
  },
  { field: "userName", kind: "text", nullable: true, column: null },
  {
    field: "waitedFor",
    kind: "text",
    nullable: true,
    column: null,
    description: `For what it waited first: ${waits.join(", ")}, which are the limits of its key, a place at a backend, or until another long prompt was read; null: it did not wait`,
  },
  { field: "priority", kind: "text", nullable: true, column: null, description: "high or low; null: normal" },
  { field: "traceId", kind: "text", nullable: true, description: "Of the client's traceparent (W3C Trace Context)" },
] as const satisfies readonly Field[];

type Fields = typeof requestFields;
type AnyField = Fields[number];

type ValueOf<One extends Field> = Values[One["kind"]] | (One extends { nullable: true } ? null : never);
type ColumnOf<One extends Field> = One extends { column: infer Column } ? Column : One["field"];
type NameOf<One extends Field> = One extends { name: infer Name } ? Name : SnakeCase<One["field"]>;

/** What is read of a request. Tokens are null if they were not counted. */
export type RequestFieldValues = {
  [One in AnyField as One extends { name: null } ? never : One["field"]]: ValueOf<One>;
};
export type RequestMemberName = Exclude<NameOf<AnyField>, null>;
export type RequestMembers = {
  [One in AnyField as Exclude<NameOf<One>, null>]: One extends { kind: "time" } ? string : ValueOf<One>;
};
export type RequestColumnFields = { [One in AnyField as Exclude<ColumnOf<One>, null>]: One };

/** One value for each column, in their order. */
export type RequestColumnValues<Some extends readonly Field[] = Fields> = Some extends readonly [
  infer One extends Field,
  ...infer Others extends readonly Field[],
]
  ? [...(One extends { column: null } ? [] : [ValueOf<One>]), ...RequestColumnValues<Others>]
  : [];

const listed: readonly Field[] = requestFields;
export const columnFields = listed.flatMap(({ column, ...one }) =>
  column === null ? [] : [{ ...one, column: column ?? one.field }],
);
export const memberFields = listed.flatMap(({ name, ...one }) =>
  name === null
    ? []
    : [
        {
          ...one,
          field: one.field as keyof RequestFieldValues,
          name: (name ?? snakeCase(one.field)) as RequestMemberName,
        },
      ],
);
