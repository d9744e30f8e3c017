// What all routes share: parts of their contracts (here), bodies, queries, errors, compression, lists that are
// streamed, and the OpenAPI document. It knows no route.
//
// It keeps true: a route has one contract: what it takes, and every response that it may send. Elysia validates queries
// and responses with it; the console's client and the OpenAPI document are made from it. A body is left to the handler,
// which sees it after session and CSRF token (`body-schema.ts`). An error shows nothing that the client sent and none
// of our internals (`errors.ts`).

import {
  type SchemaOptions,
  type Static,
  type TInteger,
  type TOptional,
  type TString,
  type TNull,
  type TSchema,
  type TUnion,
  type TUnsafe,
  Type as t,
} from "@sinclair/typebox";
import { backendStates } from "../../domain/backends.ts";
import { describes } from "./body-schema.ts";
import { timestampOf } from "../../time/seoul.ts";
import { type SnakeCase, snakeCase, type UsageField, usageFields } from "../../domain/usage.ts";

export const nullable = <S extends TSchema>(schema: S): TUnion<[S, TNull]> => t.Union([schema, t.Null()]);
export const timestamp = t.String({ format: "date-time", description: "ISO 8601 with the offset of Asia/Seoul" });
export const count = t.Integer({ minimum: 0 });
export const described = (description: string): TInteger => t.Integer({ minimum: 0, description });

type CounterName = SnakeCase<UsageField>;

/** One member for each counter, by its name in the API. */
export const counterMembers = <Value>(
  valueOf: (field: UsageField) => Value,
  fields: readonly UsageField[] = usageFields,
): Record<CounterName, Value> =>
  Object.fromEntries(fields.map((field) => [snakeCase(field), valueOf(field)])) as Record<CounterName, Value>;

type Member<Name, Value> = Name extends `${string}At` | "at" ? (Value extends number ? string : Value) : Value;

/** A row by the names of the API: `createdAt` is `created_at`. What ends in At is epoch milliseconds, and becomes a timestamp. */
export const apiBody = <Row extends object>(row: Row) =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]: [string, unknown]) => [
      snakeCase(name),
      /(^a|A)t$/.test(name) && typeof value === "number" ? timestampOf(value) : value,
    ]),
  ) as { [Name in keyof Row as SnakeCase<Name & string>]: Member<Name, Row[Name]> };

/** Optional for clients, always present for handlers: Elysia fills in the default. */
export const integerParameter = (
  name: string,
  range: { minimum: number; maximum: number; default: number },
): TInteger =>
  t.Optional(
    t.Integer({ ...range, error: `${name} must be an integer from ${range.minimum} to ${range.maximum}` }),
  ) as TInteger;

/** A day in Seoul time; one that does not exist is refused (`openapi.ts` sets the check of the format). */
export const dayParameter = (name: string, description: string): TOptional<TString> =>
  t.Optional(t.String({ format: "date", error: `${name} must be a day, such as 2026-05-01`, description }));

export const cursorMessage = "cursor must be one that this endpoint returned";

/** The query of a list that comes in pages. @param cursor its pattern */
export const pageParameters = (
  limit: { maximum: number; default: number },
  cursor: string,
): { limit: TInteger; cursor: TOptional<TString> } => ({
  limit: integerParameter("limit", { minimum: 1, ...limit }),
  cursor: t.Optional(t.String({ pattern: cursor, error: cursorMessage })),
});

export const nextCursor = nullable(
  t.String({ description: "For the following page, which may exist even if this one is empty; null after the last" }),
);

export const oneOf = <const T extends string>(values: readonly T[], options?: SchemaOptions): TUnsafe<T> =>
  t.Unsafe<T>(
    t.Union(
      values.map((value) => t.Literal(value)),
      options,
    ),
  );

export const backendState = oneOf(backendStates, {
  description: "`out`: it does not answer, and gets no requests; `draining`: it gets no new ones, as was asked for",
});

export const errorBody = t.Object({ error: t.String() });
export const okBody = t.Object({ ok: t.Literal(true) });
export type OkBody = Static<typeof okBody>;

type Errors<Status extends number> = Record<Status | 503, typeof errorBody>;

/** All errors have one shape. Every route may respond with 503, since the database may be unavailable. */
export const errors = <const Status extends number>(...statuses: Status[]): Errors<Status> =>
  Object.fromEntries([...statuses, 503].map((status) => [status, errorBody])) as Errors<Status>;

/** What a success has, and what all errors have. */
type Responses<Success, Status extends number> = {
  [Code in keyof Success | Status | 503]: Code extends keyof Success ? Success[Code] : typeof errorBody;
};

const responsesOf = <Success extends object, Status extends number>(
  success: Success,
  statuses: readonly Status[],
): Responses<Success, Status> => ({ ...errors(...statuses), ...success }) as Responses<Success, Status>;

/** The contract of a route that takes neither a query nor a body. @param more the errors that only it has */
export const responds = <B extends TSchema, const More extends number = never>(
  summary: string,
  body: B,
  ...more: More[]
) => ({ response: responsesOf({ 200: body }, [401, 403, ...more]), detail: { summary } });

export const takesQuery = <Q extends TSchema, B extends TSchema, const More extends number = never>(
  summary: string,
  query: Q,
  body: B,
  ...more: More[]
) => ({ query, response: responsesOf({ 200: body }, [400, 401, 403, ...more]), detail: { summary } });

/** For a body in which an unknown field is refused, by the handler too. */
export const strict = <S extends TSchema>(request: S): S => ({ ...request, additionalProperties: false });

/** Leaves the body to the handler. @param success its status, 201 of what creates something, and what it has */
export const takesBody = <S extends TSchema, Success extends object, const More extends number = never>(
  summary: string,
  request: S,
  success: Success,
  ...more: More[]
) => ({
  // "json" never runs; it puts the content type into the OpenAPI document.
  parse: [(): null => null, "json" as const],
  body: describes(request),
  response: responsesOf(success, [400, 401, 403, 408, 413, 415, ...more]),
  detail: { summary },
});

export const idParameter = (name: string, minimum: 0 | 1 = 1, description?: string): TOptional<TInteger> =>
  t.Optional(
    t.Integer({
      minimum,
      maximum: Number.MAX_SAFE_INTEGER,
      error: `${name} must be an integer of at least ${minimum}`,
      ...(description !== undefined && { description }),
    }),
  );
export const keyParameter = idParameter("key_id");
export const teamParameter = idParameter("team_id", 0, "The key's team when the request began; 0: none");
export const userParameter = idParameter("user_id", 0, "Whose requests; 0: nobody's in particular");

/** Text to search for, or a name. */
export const textParameter = (name: string, maxLength: number, description: string): TOptional<TString> =>
  t.Optional(t.String({ maxLength, error: `${name} must be at most ${maxLength} characters`, description }));

export const flagParameter = (name: string, description: string): TOptional<TUnsafe<"true" | "false">> =>
  t.Optional(oneOf(["true", "false"], { description, error: `${name} must be true or false` }));

export const choice = <const T extends string>(name: string, values: readonly T[], byDefault: NoInfer<T>): TUnsafe<T> =>
  t.Unsafe<T>(t.Optional(oneOf(values, { default: byDefault, error: `${name} must be one of ${values.join(", ")}` })));

export const keyAndModel = {
  key_id: nullable(t.Integer()),
  key_name: nullable(t.String()),
  model: nullable(
    t.String({
      description: "Empty: the requests named none. `other`: beyond 200 names of a key and day",
    }),
  ),
};
