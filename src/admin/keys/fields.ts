import type { KeyChange, NewKey } from "../../store/keys/contract.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser, cleanText, refuseUnknownFields } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import { keyFields, keyChangeRequest, type KeyFields, newKeyRequest, rotationRequest } from "./contract.ts";
import { limitNames } from "../../domain/limits.ts";
import type { KeyRules } from "../../domain/keys.ts";

const parseNewKeyRequest = bodyParser(newKeyRequest);
const parseChangeRequest = bodyParser(keyChangeRequest);
const parseRotationRequest = bodyParser(rotationRequest);

export function parseNewKey(json: JsonObject | ApiError): Omit<NewKey, "createdAt"> {
  const body = parseNewKeyRequest(json);
  refuseUnknownFields(body, newKeyRequest);
  const { is_active: isActive = true } = body;
  return { name: cleanText(body.name), key: body.key ?? generateKey(), isActive, ...changesOf(body) };
}

export const generateKey = (): string => crypto.randomUUID().replaceAll("-", "");

interface ParsedChange {
  change: KeyChange;
  /** The names of changed fields, as sent; without name and state, which the log spells out. */
  changed: string[];
  /** When running responses end; undefined if they are to finish. */
  endsAt: number | undefined;
}

export function parseKeyChange(json: JsonObject | ApiError, now: number): ParsedChange {
  const body = parseChangeRequest(json);
  const { name, is_active: isActive } = body;
  const change = {
    ...(name !== undefined && { name: cleanText(name) }),
    ...(isActive !== undefined && { isActive }),
    ...changesOf(body),
  };
  if (Object.keys(change).length === 0) throw new ApiError(400, "No fields to update");
  refuseUnknownFields(body, keyChangeRequest);
  return {
    change,
    changed: Object.keys(body).filter((field) => Object.hasOwn(keyFields, field)),
    endsAt: body.end_running === true ? endOf(change, now) : undefined,
  };
}

function endOf({ isActive, expiresAt }: KeyChange, now: number): number {
  if (isActive === false) return now;
  if (expiresAt === undefined || expiresAt === null) {
    throw new ApiError(400, "end_running requires is_active false or expires_at");
  }
  return Math.max(now, expiresAt);
}

/** @returns how many minutes the old secret is accepted for */
export const parseRotation = (json: JsonObject | ApiError): number => parseRotationRequest(json).grace_minutes ?? 0;

function changesOf(fields: KeyFields): KeyChange {
  const { expires_at: expiresAt, owner, note, tags } = fields;
  const rules = rulesOf(fields);
  return {
    ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : Date.parse(expiresAt) }),
    ...(owner !== undefined && { owner: textOrNull(owner) }),
    ...(note !== undefined && { note: textOrNull(note) }),
    ...(tags !== undefined && { tags: unique((tags ?? []).map(cleanText)) }),
    ...(Object.keys(rules).length > 0 && { rules }),
  };
}

function rulesOf(fields: KeyFields): Partial<KeyRules> {
  const { scope, allowed_models: models, allowed_paths: paths } = fields;
  const limits = limitNames.filter((name) => fields[name] !== undefined);
  return {
    ...Object.fromEntries(limits.map((name) => [name, fields[name]])),
    ...(scope !== undefined && { scope: scope ?? "all" }),
    ...(models !== undefined && {
      allowed_models: models && unique(models.map((name) => cleanText(name).toLowerCase())),
    }),
    ...(paths !== undefined && { allowed_paths: paths && unique(paths) }),
  };
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

/** An empty text clears the field. */
const textOrNull = (value: string | null): string | null => (value === null ? null : cleanText(value) || null);
