import type { KeyChange, NewKey, TeamChange } from "../../store/keys/contract.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser, cleanText, refuseUnknownFields } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import {
  keyFields,
  keyChangeRequest,
  type KeyFields,
  type KeyPolicy,
  keyPolicyRequest,
  newKeyRequest,
  policyDefaults,
  rotationRequest,
} from "./contract.ts";
import { limitKinds, type LimitName, limitNames, type LimitsExtra, perLimit } from "../../domain/limits.ts";
import { windowResetAt } from "../../time/windows.ts";
import { msPerDay } from "../../time/seoul.ts";
import type { KeyLimits, KeyRules } from "../../domain/keys.ts";
import { newTeamRequest, teamChangeRequest } from "./teams-contract.ts";

const parseNewKeyRequest = bodyParser(newKeyRequest);
const parseChangeRequest = bodyParser(keyChangeRequest);
const parseRotationRequest = bodyParser(rotationRequest);
const parsePolicyRequest = bodyParser(keyPolicyRequest);
const parseNewTeamRequest = bodyParser(newTeamRequest);
const parseTeamChangeRequest = bodyParser(teamChangeRequest);

/** @param policy has what the body leaves out */
export function parseNewKey(json: JsonObject | ApiError, policy: KeyPolicy, now: number): NewKey {
  const body = parseNewKeyRequest(json);
  refuseUnknownFields(body, newKeyRequest);
  const { name, key = generateKey(), is_active: isActive = true } = body;
  const { expires_in_days: days, ...defaults } = policy;
  const expiresAt = days === null ? null : now + days * msPerDay;
  return {
    name: cleanText(name),
    key,
    isActive,
    createdAt: now,
    expiresAt,
    ...changesOf({ ...defaults, ...body }, now),
  };
}

export const noPolicy: KeyPolicy = {
  ...perLimit(() => null),
  expires_in_days: null,
  allowed_models: null,
  team_id: null,
};

export function parsePolicy(json: JsonObject | ApiError): KeyPolicy {
  const body = parsePolicyRequest(json);
  refuseUnknownFields(body, keyPolicyRequest);
  refuseUnknownFields(body.defaults, policyDefaults);
  const { allowed_models: models = null } = body.defaults;
  return { ...noPolicy, ...body.defaults, allowed_models: models && namesOf(models) };
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
    ...changesOf(body, now),
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

function changesOf(fields: KeyFields, now: number): KeyChange {
  const { expires_at: expiresAt, owner, team_id: teamId } = fields;
  const rules = rulesOf(fields, now);
  return {
    ...(expiresAt !== undefined && { expiresAt: expiresAt === null ? null : Date.parse(expiresAt) }),
    ...(owner !== undefined && { owner: textOrNull(owner) }),
    ...notesOf(fields),
    ...(teamId !== undefined && { teamId }),
    ...(Object.keys(rules).length > 0 && { rules }),
  };
}

const notesOf = ({ note, tags }: Pick<KeyFields, "note" | "tags">): Pick<KeyChange, "note" | "tags"> => ({
  ...(note !== undefined && { note: textOrNull(note) }),
  ...(tags !== undefined && { tags: unique((tags ?? []).map(cleanText)) }),
});

const limitsOf = (fields: Pick<KeyFields, LimitName | "limits_extra">, now: number): Partial<KeyLimits> => ({
  ...Object.fromEntries(limitNames.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]])),
  ...(fields.limits_extra !== undefined && { limits_extra: fields.limits_extra && extraOf(fields.limits_extra, now) }),
});

const extraOf = (amounts: Partial<Record<LimitName, number>>, now: number): LimitsExtra =>
  Object.fromEntries(
    limitNames.flatMap((name) => {
      const more = amounts[name];
      return more === undefined ? [] : [[name, { more, until: windowResetAt(limitKinds[name].window, now) }]];
    }),
  );

export function parseTeam(json: JsonObject | ApiError, isNew: boolean, now: number): TeamChange {
  const body = isNew ? parseNewTeamRequest(json) : parseTeamChangeRequest(json);
  const limits = limitsOf(body, now);
  const change = {
    ...(body.name !== undefined && { name: cleanText(body.name) }),
    ...notesOf(body),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
  if (Object.keys(change).length === 0) throw new ApiError(400, "No fields to update");
  refuseUnknownFields(body, newTeamRequest);
  return change;
}

function rulesOf(fields: KeyFields, now: number): Partial<KeyRules> {
  const { scope, allowed_models: models, allowed_paths: paths } = fields;
  return {
    ...limitsOf(fields, now),
    ...(scope !== undefined && { scope: scope ?? "all" }),
    ...(models !== undefined && { allowed_models: models && namesOf(models) }),
    ...(paths !== undefined && { allowed_paths: paths && unique(paths) }),
  };
}

const namesOf = (models: readonly string[]): string[] => unique(models.map((name) => cleanText(name).toLowerCase()));

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

/** An empty text clears the field. */
const textOrNull = (value: string | null): string | null => (value === null ? null : cleanText(value) || null);
