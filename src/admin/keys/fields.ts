import type { KeyRules } from "../../domain/keys.ts";
import type { LimitName } from "../../domain/keys.ts";
import type { KeyScope } from "../../domain/keys.ts";
import type { KeyChange } from "../../store/keys/contract.ts";
import { isDay } from "../../time/seoul.ts";
import type { JsonObject } from "../http/body.ts";
import { ApiError } from "../http/errors.ts";

const maxNameCodePoints = 120;
const maxOwnerCodePoints = 120;
const maxNoteCodePoints = 1000;
const maxTags = 10;
const maxTagCodePoints = 40;
const maxModels = 100;
const maxModelCodePoints = 256;

/** The largest value of each limit. */
export const limitMaxima: Readonly<Record<LimitName, number>> = {
  max_concurrency: 1_000_000,
  requests_per_minute: 1_000_000_000,
  tokens_per_minute: 1_000_000_000_000,
  tokens_per_day: 1_000_000_000_000,
  tokens_per_month: 1_000_000_000_000,
};

export const limitNames = Object.keys(limitMaxima) as LimitName[];

const scopes: readonly KeyScope[] = ["all", "inference", "gpu"];

/** What POST and PATCH take besides `name`, `key` and `is_active`. Null clears a field. @throws ApiError 400 */
export function parseKeyFields(json: JsonObject): KeyChange {
  const { expires_at: expiresAt, owner, note, tags } = json;
  const rules = parseRuleFields(json);
  return {
    ...(expiresAt !== undefined && { expiresAt: parseTimestamp(expiresAt) }),
    ...(owner !== undefined && { owner: parseText("owner", owner, maxOwnerCodePoints) }),
    ...(note !== undefined && { note: parseText("note", note, maxNoteCodePoints) }),
    ...(tags !== undefined && { tags: parseTags(tags) }),
    ...(Object.keys(rules).length > 0 && { rules }),
  };
}

function parseRuleFields(json: JsonObject): Partial<KeyRules> {
  const { scope, allowed_models: models } = json;
  const limits = limitNames.filter((name) => json[name] !== undefined);
  return {
    ...Object.fromEntries(limits.map((name) => [name, parseLimit(name, json[name])])),
    ...(scope !== undefined && { scope: parseScope(scope) }),
    ...(models !== undefined && { allowed_models: parseModels(models) }),
  };
}

function parseLimit(name: LimitName, value: unknown): number | null {
  if (value === null) return null;
  const isAllowed = typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= limitMaxima[name];
  if (!isAllowed) throw new ApiError(400, `${name} must be an integer from 1 to ${limitMaxima[name]}`);
  return value;
}

function parseScope(value: unknown): KeyScope {
  const scope = value === null ? "all" : scopes.find((one) => one === value);
  if (scope === undefined) throw new ApiError(400, `scope must be one of ${scopes.join(", ")}`);
  return scope;
}

function parseModels(value: unknown): string[] | null {
  if (value === null) return null;
  if (!Array.isArray(value)) throw new ApiError(400, "allowed_models must be an array of strings");
  if (value.length === 0) throw new ApiError(400, "allowed_models must not be empty");
  if (value.length > maxModels) throw new ApiError(400, `allowed_models must have at most ${maxModels} entries`);
  const names = value.map((name: unknown) =>
    requireText("allowed_models entry", name, maxModelCodePoints).toLowerCase(),
  );
  if (names.some((name) => name.slice(0, -1).includes("*"))) {
    throw new ApiError(400, "allowed_models entry must have * only at its end");
  }
  return [...new Set(names)];
}

function parseTags(value: unknown): string[] {
  if (value === null) return [];
  if (!Array.isArray(value)) throw new ApiError(400, "tags must be an array of strings");
  if (value.length > maxTags) throw new ApiError(400, `tags must have at most ${maxTags} entries`);
  return [...new Set(value.map((tag: unknown) => requireText("tag", tag, maxTagCodePoints)))];
}

/** With an offset, so that it means the same instant everywhere. */
const timestamp = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;
/** Of Seoul's years with four digits: others have no RFC 3339 timestamp. */
const firstInstantMs = Date.parse("0000-01-01T00:00:00.000+09:00");
const lastInstantMs = Date.parse("9999-12-31T23:59:59.999+09:00");

function parseTimestamp(value: unknown): number | null {
  if (value === null) return null;
  if (typeof value !== "string") throw new ApiError(400, "expires_at must be a string");
  const [, day] = timestamp.exec(value) ?? [];
  const instantMs = day === undefined || !isDay(day) ? Number.NaN : Date.parse(value);
  const isAllowed = instantMs >= firstInstantMs && instantMs <= lastInstantMs;
  if (!isAllowed) {
    throw new ApiError(400, "expires_at must be an ISO 8601 timestamp with an offset");
  }
  return instantMs;
}

/** An empty text clears the field. */
function parseText(field: string, value: unknown, maxCodePoints: number): string | null {
  if (value === null || (typeof value === "string" && value.trim() === "")) return null;
  return requireText(field, value, maxCodePoints);
}

export const parseName = (value: unknown): string => requireText("name", value, maxNameCodePoints);

function requireText(field: string, value: unknown, maxCodePoints: number): string {
  if (typeof value !== "string") throw new ApiError(400, `${field} must be a string`);
  const text = value.trim().toWellFormed();
  if (text === "") throw new ApiError(400, `${field} must not be empty`);
  if (Array.from(text).length > maxCodePoints)
    throw new ApiError(400, `${field} must be at most ${maxCodePoints} characters`);
  // PostgreSQL cannot store them in text, and SQLite's functions stop at them.
  if (text.includes("\0")) throw new ApiError(400, `${field} must not contain null characters`);
  return text;
}
