import { usedOf } from "../../store/limits/judge.ts";
import type { CountedLoad } from "../../store/limits/contract.ts";
import type { Key } from "../../store/keys/contract.ts";
import type { Store } from "../../store/store.ts";
import { timestampOf, windowResetAt } from "../../time/seoul.ts";
import { maskKey } from "../../domain/keys.ts";
import type { KeyBody, KeyQuery } from "./contract.ts";
import type { Subject, SubjectId } from "../../domain/keys.ts";
import {
  hasLimit,
  type KeyLimits,
  limitAt,
  limitKinds,
  type LimitName,
  limitNames,
  perLimit,
} from "../../domain/limits.ts";

/** Formatting a slice takes about a millisecond; streams run between two slices. */
const keysPerSlice = 100;

/** With the key in full: only for the responses that create it or replace its secret. */
export function fullKeyBody(key: Key, load: CountedLoad | undefined): KeyBody {
  const { scope, allowed_models: models, allowed_paths: paths } = key.rules;
  return {
    id: key.id,
    key: key.key,
    name: key.name,
    is_active: key.isActive,
    created_at: timestampOf(key.createdAt),
    last_used_at: key.lastUsedAt === null ? null : timestampOf(key.lastUsedAt),
    total_request_count: key.requestCount,
    total_input_tokens: key.inputTokens,
    total_output_tokens: key.outputTokens,
    total_estimated_tokens: key.estimatedTokens,
    expires_at: key.expiresAt === null ? null : timestampOf(key.expiresAt),
    scope,
    allowed_models: models && [...models],
    allowed_paths: paths && [...paths],
    ...limitsBody(key.rules, load),
    notify: key.rules.notify === true,
    refused_today: load?.refusedToday ?? 0,
    owner: key.owner,
    note: key.note,
    tags: [...key.tags],
    users_from: key.rules.users_from,
    has_users_secret: key.rules.users_secrets !== null,
    user_limits: key.rules.user_limits && { priority: null, ...key.rules.user_limits },
    users_max: key.rules.users_max,
    users_required: key.rules.users_required === true,
    team_id: key.teamId,
    user_id: key.userId,
  };
}

type LimitsBody = Pick<KeyBody, LimitName | "priority" | "limits_extra" | "used" | "limit_states">;

/** The limits of a key and what counts against them. */
export const limitsBody = (limits: KeyLimits, load: CountedLoad | undefined): LimitsBody => ({
  ...perLimit((name) => limits[name]),
  priority: limits.priority ?? null,
  limits_extra: load === undefined ? null : extraAt(limits, load.readAt),
  used: perLimit((name) => (limits[name] === null ? null : load === undefined ? 0 : usedOf(load, name))),
  limit_states: load === undefined ? {} : limitStates(limits, load),
});

function extraAt(limits: KeyLimits, now: number): KeyBody["limits_extra"] {
  const all = limitNames.map((name) => [name, (limitAt(limits, name, now) ?? 0) - (limits[name] ?? 0)] as const);
  const extra = all.filter(([, more]) => more > 0);
  return extra.length === 0 ? null : Object.fromEntries(extra);
}

function limitStates(limits: KeyLimits, load: CountedLoad): KeyBody["limit_states"] {
  const states: Partial<Record<LimitName, LimitState>> = {};
  for (const name of limitNames) {
    const limit = limitAt(limits, name, load.readAt);
    if (limit === null) continue;
    const extra = limit - (limits[name] ?? 0);
    const { counts, window } = limitKinds[name];
    const [taken, charged] = [usedOf(load, name), usedOf(load, name, true)];
    states[name] = {
      limit,
      ...(extra > 0 && { extra }),
      used: charged,
      reserved: taken - charged,
      estimated: (counts === "tokens" ? load.estimated[window] : undefined) ?? null,
      left: Math.max(0, limit - taken),
      resets_at: window === "now" ? null : timestampOf(windowResetAt(window, load.readAt)),
    };
  }
  return states;
}

type LimitState = NonNullable<KeyBody["limit_states"][LimitName]>;

export const maskedKeyBody = (key: Key, load: CountedLoad | undefined): KeyBody => ({
  ...fullKeyBody(key, load),
  key: maskKey(key.key),
});

/** What counts against the limits of a key; undefined for a key without any. */
export async function readLoad({ limits }: Pick<Store, "limits">, key: Key): Promise<CountedLoad | undefined> {
  return (await readLoads(limits, [{ id: key.id, limits: key.rules }])).get(key.id);
}

/** The same of several, by their ids. */
export async function readLoads(
  { listLoads }: Store["limits"],
  subjects: readonly Subject[],
): Promise<Map<SubjectId, CountedLoad>> {
  const limited = subjects.filter(({ limits }) => hasLimit(limits)).map(({ id }) => id);
  if (limited.length === 0) return new Map();
  return new Map((await listLoads(limited)).map((load) => [load.keyId, load]));
}

/** Whether a key's name, owner, note or tags contain a text, in any case. */
function matches({ name, owner, note, tags }: Key, text: string): boolean {
  return [name, owner ?? "", note ?? "", ...tags].some((field) => field.toLowerCase().includes(text));
}

/**
 * The keys as JSON: masked objects in the API's shape, separated by commas, without the brackets. Reads on demand.
 * @param query only the key with the id, and only keys that contain the text
 */
export async function* maskedKeysJson(
  { keys: { list }, limits }: Pick<Store, "keys" | "limits">,
  { search = "", key_id: keyId, limit = Infinity }: KeyQuery,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  const text = search.trim().toLowerCase();
  const isWanted = (key: Key): boolean => (keyId ?? key.id) === key.id && (text === "" || matches(key, text));
  let after = keyId === undefined ? 0 : keyId - 1;
  let separator = "";
  let left = limit;
  for (;;) {
    const keys = await list({ after, limit: keyId === undefined ? keysPerSlice : 1 });
    const last = keys.at(-1);
    if (last === undefined || (keyId !== undefined && after >= keyId)) return;
    after = last.id;
    const found = keys.filter(isWanted).slice(0, left);
    if (found.length === 0) continue;
    const subjects = found.map(({ id, rules }) => ({ id, limits: rules }));
    const loads = await readLoads(limits, subjects);
    const bodies = found.map((key) => JSON.stringify(maskedKeyBody(key, loads.get(key.id))));
    yield encoder.encode(separator + bodies.join(","));
    separator = ",";
    left -= found.length;
    if (left === 0) return;
  }
}
