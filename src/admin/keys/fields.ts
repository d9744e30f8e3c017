import type { Static } from "@sinclair/typebox";
import type { KeyChange, NewKey, SubjectChange, TeamOrUser } from "../../store/keys/contract.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser, cleanText, refuseUnknownFields } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import {
  keyFields,
  keyChangeRequest,
  type KeyFields,
  type Ceilings,
  defaultMaxKeys,
  type KeyDefaults,
  type KeyPolicy,
  keyPolicyRequest,
  newKeyRequest,
  policyCeilings,
  policyDefaults,
  rotationRequest,
} from "./contract.ts";
import {
  limitKinds,
  type LimitName,
  limitNames,
  type LimitsExtra,
  lowestPriority,
  perLimit,
} from "../../domain/limits.ts";
import { maxUserLength, ownKeyChangeRequest, ownKeyRequest } from "./me-contract.ts";
import { msPerDay, windowResetAt } from "../../time/seoul.ts";
import type { KeyLimits, KeyRules } from "../../domain/keys.ts";
import { noLimits } from "../../store/keys/rules.ts";
import { newTeamRequest, newUserRequest, teamChangeRequest, userChangeRequest } from "./subjects-contract.ts";

const parseNewKeyRequest = bodyParser(newKeyRequest);
const parseChangeRequest = bodyParser(keyChangeRequest);
const parseRotationRequest = bodyParser(rotationRequest);
const parseOwnKeyRequest = bodyParser(ownKeyRequest);
const parseOwnKeyChangeRequest = bodyParser(ownKeyChangeRequest);
const parsePolicyRequest = bodyParser(keyPolicyRequest);
const subjectRequests = {
  team: {
    create: [newTeamRequest, bodyParser(newTeamRequest)],
    update: [teamChangeRequest, bodyParser(teamChangeRequest)],
  },
  user: {
    create: [newUserRequest, bodyParser(newUserRequest)],
    update: [userChangeRequest, bodyParser(userChangeRequest)],
  },
} as const;

/** @param policy has what the body leaves out */
export function parseNewKey(json: JsonObject | ApiError, policy: KeyDefaults, now: number): NewKey {
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

const nothing = { ...perLimit(() => null), priority: null, expires_in_days: null };
export const noDefaults: KeyDefaults = { ...nothing, allowed_models: null, team_id: null };
export const noCeilings: Ceilings = { max_keys: null, ...nothing };

export function parsePolicy(json: JsonObject | ApiError): KeyPolicy {
  const body = parsePolicyRequest(json);
  refuseUnknownFields(body, keyPolicyRequest);
  refuseUnknownFields(body.defaults, policyDefaults);
  refuseUnknownFields(body.member ?? {}, policyCeilings);
  const { allowed_models: models = null } = body.defaults;
  return {
    defaults: { ...noDefaults, ...body.defaults, allowed_models: models && namesOf(models) },
    member: { ...noCeilings, ...body.member },
  };
}

/** The most that a key of somebody's own may have. */
export function ceilingsOf({ defaults, member }: KeyPolicy): Ceilings & { max_keys: number } {
  const least = <Name extends keyof typeof nothing>(name: Name) => member[name] ?? defaults[name];
  return {
    max_keys: member.max_keys ?? defaultMaxKeys,
    ...perLimit((name) => least(name)),
    priority: least("priority"),
    expires_in_days: least("expires_in_days"),
  };
}

/**
 * A key of somebody's own.
 * @param user is in its name, whose whole has at most 120 characters
 * @throws ApiError 400 for what is above a ceiling
 */
export function parseOwnKey(
  json: JsonObject | ApiError,
  policy: KeyPolicy,
  user: Pick<TeamOrUser, "id" | "name">,
  now: number,
): NewKey {
  const body = parseOwnKeyRequest(json);
  refuseUnknownFields(body, ownKeyRequest);
  const { max_keys: maxKeys, expires_in_days: days, ...most } = ceilingsOf(policy);
  for (const name of limitNames) requireAtMost(name, body[name], most[name]);
  const [asked, highest] = [body.priority ?? null, most.priority ?? "normal"];
  if (asked !== null && lowestPriority([asked, highest]) !== asked) {
    throw new ApiError(400, `priority must be at most ${highest}`);
  }
  const given = Object.entries(body).filter(([, value]) => value !== null);
  const fields: KeyFields = { ...most, ...Object.fromEntries(given) };
  const end = endOfOwn(policy, now);
  if (end !== null && typeof body.expires_at === "string" && Date.parse(body.expires_at) > end) {
    throw new ApiError(400, `expires_at must be at most ${days} days from now`);
  }
  const { allowed_models, team_id } = policy.defaults;
  return {
    expiresAt: end,
    ...changesOf({ ...fields, allowed_models, team_id, scope: "inference" }, now),
    name: nameOfOwn(body.name, user),
    key: generateKey(),
    createdAt: now,
    own: { userId: user.id, maxKeys },
  };
}

/** When one that begins now ends, at the latest. */
export function endOfOwn(policy: KeyPolicy, now: number): number | null {
  const { expires_in_days: days } = ceilingsOf(policy);
  return days === null ? null : now + days * msPerDay;
}

function requireAtMost(name: string, asked: number | null | undefined, most: number | null): void {
  if (most !== null && (asked ?? 0) > most) throw new ApiError(400, `${name} must be at most ${most}`);
}

export const nameOfOwn = (name: string, user: Pick<TeamOrUser, "name">): string =>
  `${Array.from(user.name).slice(0, maxUserLength).join("")}: ${cleanText(name)}`;

/** @returns what the body changes of a key of somebody's own */
export function parseOwnKeyChange(
  json: JsonObject | ApiError,
  user: Pick<TeamOrUser, "name">,
): Pick<KeyChange, "name" | "isActive"> {
  const body = parseOwnKeyChangeRequest(json);
  const { name, is_active: isActive } = body;
  if (name === undefined && isActive === undefined) throw new ApiError(400, "No fields to update");
  refuseUnknownFields(body, ownKeyChangeRequest);
  return { ...(name !== undefined && { name: nameOfOwn(name, user) }), ...(isActive !== undefined && { isActive }) };
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

type LimitFields = Pick<KeyFields, LimitName | "priority" | "limits_extra" | "notify">;
const limitsOf = (fields: LimitFields, now: number): Partial<KeyLimits> => ({
  ...Object.fromEntries(limitNames.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]])),
  ...(fields.priority !== undefined && { priority: fields.priority }),
  ...(fields.limits_extra !== undefined && { limits_extra: fields.limits_extra && extraOf(fields.limits_extra, now) }),
  ...(fields.notify !== undefined && { notify: fields.notify || null }),
});

const extraOf = (amounts: Partial<Record<LimitName, number>>, now: number): LimitsExtra =>
  Object.fromEntries(
    limitNames.flatMap((name) => {
      const more = amounts[name];
      return more === undefined ? [] : [[name, { more, until: windowResetAt(limitKinds[name].window, now) }]];
    }),
  );

/** What is asked of a team or a user; of a new user, who it is too. */
export function parseSubject(
  json: JsonObject | ApiError,
  kind: TeamOrUser["kind"],
  isNew: boolean,
  now: number,
): SubjectChange & { keyId?: number; source?: string; external?: string } {
  const [schema, parse] = subjectRequests[kind][isNew ? "create" : "update"];
  const body: Partial<Static<typeof newUserRequest> & Static<typeof userChangeRequest>> = parse(json);
  const { name, is_active: isActive, team_id: teamId, same_as: sameAs, key_id: keyId, source, external } = body;
  const limits = limitsOf(body, now);
  const change = {
    ...(name !== undefined && { name: cleanText(name) }),
    ...(isActive !== undefined && { isActive }),
    ...(teamId !== undefined && { teamId }),
    ...(sameAs !== undefined && { sameAs }),
    ...(body.team_by_provider !== undefined && { teamByProvider: body.team_by_provider }),
    ...(keyId !== undefined && { keyId }),
    ...(source !== undefined && { source }),
    ...(external !== undefined && { external: cleanText(external) }),
    ...notesOf(body),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
  if (Object.keys(change).length === 0) throw new ApiError(400, "No fields to update");
  refuseUnknownFields(body, schema);
  const isOfOne = (keyId === undefined) !== (source === undefined);
  if (kind === "user" && isNew && !isOfOne) throw new ApiError(400, "Either key_id or source is required");
  return change;
}

function rulesOf(fields: KeyFields, now: number): Partial<KeyRules> {
  const { scope, allowed_models: models, allowed_paths: paths } = fields;
  const { users_from, users_secret: secret, user_limits: limits, users_max, users_required: isRequired } = fields;
  if (users_from?.includes("@") === true && typeof secret !== "string") {
    throw new ApiError(400, "users_from with @ takes signed users only: it requires users_secret");
  }
  return {
    ...limitsOf(fields, now),
    ...(users_from !== undefined && { users_from }),
    ...(secret !== undefined && { users_secrets: secret === null ? null : [secret] }),
    ...(limits !== undefined && { user_limits: limits && { ...noLimits, ...limitsOf(limits, now) } }),
    ...(users_max !== undefined && { users_max }),
    ...(isRequired !== undefined && { users_required: isRequired || null }),
    ...(scope !== undefined && { scope: scope ?? "all" }),
    ...(models !== undefined && { allowed_models: models && namesOf(models) }),
    ...(paths !== undefined && { allowed_paths: paths && unique(paths) }),
  };
}

const namesOf = (models: readonly string[]): string[] => unique(models.map((name) => cleanText(name).toLowerCase()));

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];

/** An empty text clears the field. */
const textOrNull = (value: string | null): string | null => (value === null ? null : cleanText(value) || null);
