import {
  Kind,
  type Static,
  type TObject,
  type TSchema,
  type TUnsafe,
  Type as t,
  TypeRegistry,
} from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type ValueError, type ValueErrorIterator, ValueErrorType } from "@sinclair/typebox/errors";
import type { JsonObject } from "./body.ts";
import { isDay } from "../../time/seoul.ts";
import { ApiError } from "./errors.ts";

// A body has one schema: the OpenAPI document shows it, and the route checks bodies with it. `error` holds the sentence
// for the client. It is a function, because the document is JSON and leaves functions out.

/** The sentence about what is wrong with a value; undefined if nothing is. */
type FindProblem = (value: unknown) => string | undefined;

const checkedByError = "CheckedByError";
TypeRegistry.Set<{ error: FindProblem }>(checkedByError, ({ error }, value) => error(value) === undefined);

/** Shows `schema` in the document, and accepts what `error` finds no problem with: for what no schema can say. */
export const checkedBy = <S extends TSchema>(error: FindProblem, schema: S): TUnsafe<Static<S>> =>
  t.Unsafe<Static<S>>({ ...schema, [Kind]: checkedByError, error });

/**
 * Checks a body and gives it its type. Unknown fields stay.
 * @throws ApiError 400 with the sentence about the first wrong field; a body that is a failure is thrown as it is
 */
export function bodyParser<S extends TObject>(schema: S): (body: JsonObject | ApiError) => Static<S> {
  // Compiled for the first body: all schemas together would take 15 ms of each start, of commands too.
  let compiled: TypeCheck<S> | undefined;
  return (body) => {
    if (body instanceof ApiError) throw body;
    compiled ??= TypeCompiler.Compile(schema);
    if (compiled.Check(body)) return body;
    throw new ApiError(400, firstSentence(compiled.Errors(body)) ?? "Invalid JSON body");
  };
}

function firstSentence(errors: ValueErrorIterator): string | undefined {
  for (const error of errors) {
    // TypeBox reports missing fields before all others, and then once more in their turn.
    if (error.type !== ValueErrorType.ObjectRequiredProperty) return sentenceOf(error);
  }
  return undefined;
}

function sentenceOf({ schema, value, path, errors: [firstChoice] }: ValueError): string {
  const { error } = schema as { error?: unknown } as { error?: FindProblem };
  const sentence = error === undefined ? firstChoice && firstSentence(firstChoice) : error(value);
  return sentence ?? `${path.slice(1).replaceAll("/", ".")} is invalid`;
}

const [maxUnknownNames, maxNameLength] = [5, 64];

/** A misspelt limit would make a key without it. @throws ApiError 400 */
export function refuseUnknownFields(body: object, { properties }: TObject): void {
  const names = Object.keys(body).filter((name) => !Object.hasOwn(properties, name));
  if (names.length === 0) return;
  const listed = names.slice(0, maxUnknownNames).map((name) => cleanText(name.slice(0, maxNameLength)));
  const more = names.length > listed.length ? ` and ${names.length - listed.length} more` : "";
  throw new ApiError(400, `Unknown ${names.length === 1 ? "field" : "fields"}: ${listed.join(", ")}${more}`);
}

/** With an offset, so that it means the same instant everywhere. */
const instantPattern = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;
/** Seoul's years have four digits between these: others have no RFC 3339 timestamp. */
const firstInstantMs = Date.parse("0000-01-01T00:00:00.000+09:00");
const lastInstantMs = Date.parse("9999-12-31T23:59:59.999+09:00");

function findInstantProblem(field: string, value: unknown): string | undefined {
  if (typeof value !== "string") return `${field} must be a string`;
  const [, day] = instantPattern.exec(value) ?? [];
  const instantMs = day === undefined || !isDay(day) ? Number.NaN : Date.parse(value);
  const isAllowed = instantMs >= firstInstantMs && instantMs <= lastInstantMs;
  return isAllowed ? undefined : `${field} must be an ISO 8601 timestamp with an offset`;
}

export const instant = (field: string, description: string): TUnsafe<string> =>
  checkedBy((value) => findInstantProblem(field, value), t.String({ format: "date-time", description }));

/** Leaves a body to the route, which checks it after session and CSRF token; Elysia would do so before. */
export const describes = <S extends TSchema>(schema: S): TUnsafe<Static<S>> =>
  t.Unsafe<Static<S>>({ ...schema, [Kind]: "Any" });

/** The guard has read it, unless there was the header. For the other checks it is not there, whatever it holds. */
export const csrfField = t.Optional(t.Unknown({ description: "Alternative to the header X-CSRF-Token" }));

/** A whole number of a body. */
export const integerField = (
  name: string,
  { minimum = 1, maximum, ...rest }: { minimum?: number; maximum: number; default?: number; description?: string },
) =>
  t.Integer({
    minimum,
    maximum,
    ...rest,
    error: () => `${name} must be an integer from ${minimum} to ${maximum}`,
  });

/** The id of a key, team or user in a body. */
export const idField = (name: string, noun: string, description: string) =>
  t.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description,
    error: () => `${name} must be the id of a ${noun}`,
  });

export const booleanField = (name: string, description?: string) =>
  t.Boolean({ ...(description !== undefined && { description }), error: () => `${name} must be a boolean` });

interface TextOptions {
  /** Counted in code points. */
  maxLength: number;
  description?: string;
  /** It may have lines and tabs. */
  multiline?: boolean;
}

// Text stands beside other text in tables, logs and CSV files: overrides of direction would change how that reads (Unicode
// TR36, section 2.6), and control characters break lines. PostgreSQL cannot store null characters, and SQLite's functions
// stop at them. Joiners stay: emoji and several scripts need them.
const overrides = "\\u202a-\\u202e\\u2066-\\u2069";
const forbiddenInLine = `\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029${overrides}`;
const forbiddenInLines = `\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f${overrides}`;
const forbiddenIn = ({ multiline = false }: TextOptions): string => (multiline ? forbiddenInLines : forbiddenInLine);

/** Text that counts without the white space around it. Clean it with `cleanText`. */
export const text = (
  field: string,
  options: TextOptions,
  findMore?: (cleaned: string) => string | undefined,
): TUnsafe<string> =>
  checkedBy(
    (value) => {
      if (value === undefined) return `${field} is required`;
      if (typeof value !== "string") return `${field} must be a string`;
      const cleaned = cleanText(value);
      if (cleaned === "") return `${field} must not be empty`;
      return findTextProblem(field, cleaned, options) ?? findMore?.(cleaned);
    },
    t.String({
      minLength: 1,
      // White space around it is trimmed before the text is looked at.
      pattern: `^\\s*[^${forbiddenIn(options)}]*[^${forbiddenIn(options)}\\s][^${forbiddenIn(options)}]*\\s*$`,
      ...documented(options),
    }),
  );

/** Text that may be empty. */
export const optionalText = (field: string, options: TextOptions): TUnsafe<string> =>
  checkedBy(
    (value) =>
      typeof value === "string" ? findTextProblem(field, cleanText(value), options) : `${field} must be a string`,
    t.String({ pattern: `^\\s*[^${forbiddenIn(options)}]*\\s*$`, ...documented(options) }),
  );

const documented = ({ maxLength, description }: TextOptions) => ({ maxLength, ...(description && { description }) });

function findTextProblem(field: string, cleaned: string, options: TextOptions): string | undefined {
  if (!hasAtMost(options.maxLength, cleaned)) return `${field} must be at most ${options.maxLength} characters`;
  return new RegExp(`[${forbiddenIn(options)}]`).test(cleaned)
    ? `${field} must not contain control characters or overrides of text direction`
    : undefined;
}

export const cleanText = (value: string): string => value.trim().toWellFormed();

/** Counts code points, two units at most for each. */
export const hasAtMost = (codePoints: number, value: string): boolean =>
  value.length <= 2 * codePoints && Array.from(value).length <= codePoints;
