// API keys: their list, their changes, and what the holder of one sees of it (`own-key.ts`, `own-activity.ts`).
//
// It keeps true: a secret is shown in full only by the response that creates or replaces it, and no log has one. Each
// change is logged with who made it. Where a key is made or changed, an unknown field is refused, since it may be a
// limit that is misspelt. Running responses end only if that is asked for, in all processes. What counts against a
// limit is not known here: `store/limits` says.

import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { Store } from "../../store/store.ts";
import { msPerMinute } from "../../time/seoul.ts";
import type { ChangeContext, JsonContext } from "../session/auth.ts";
import type { AdminDeps } from "../http/deps.ts";
import { ApiError } from "../http/errors.ts";
import { streamJson } from "../http/json-stream.ts";
import { fullKeyBody, maskedKeyBody, maskedKeysJson, readLoad } from "./body.ts";
import {
  generateKey,
  noCeilings,
  noDefaults,
  parseKeyChange,
  parseNewKey,
  parsePolicy,
  parseRotation,
} from "./fields.ts";
import type { KeyBody, KeyDefaults, KeyDeletionQuery, KeyPolicy, KeyQuery } from "./contract.ts";
import * as schema from "../http/schemas.ts";

export interface IdContext {
  params: { id: string };
}

export const listKeys =
  ({ store, log }: AdminDeps) =>
  async ({ request, query }: { request: Request; query: KeyQuery }): Promise<Response> => {
    const keys = maskedKeysJson(store, query);
    if (query.limit === undefined) return streamJson(request, ["[", keys, "]"], log);
    const body = `[${Buffer.concat(await Array.fromAsync(keys)).toString()}]`;
    const headers = { etag: `W/"${Bun.hash(body).toString(36)}"`, "content-type": "application/json;charset=utf-8" };
    const isKnown = request.headers.get("if-none-match") === headers.etag;
    return new Response(isKnown ? null : body, { status: isKnown ? 304 : 200, headers });
  };

export const createKey =
  ({ store, log, clock }: AdminDeps) =>
  async ({ json, actor, by }: JsonContext): Promise<ElysiaCustomStatusResponse<201, KeyBody>> => {
    const key = await store.keys.create(parseNewKey(json, (await readPolicy(store)).defaults, clock()), by);
    if (typeof key === "string") throw keyProblem(key);
    log.info("Key created", { ...actor, keyId: key.id, name: key.name });
    return status(201, fullKeyBody(key, await readLoad(store, key)));
  };

export const updateKey =
  ({ store, log, clock, endRunning }: AdminDeps) =>
  async ({ json, params, actor, by }: JsonContext & IdContext): Promise<KeyBody> => {
    const { change, changed, endsAt } = parseKeyChange(json, clock());
    const key = await store.keys.update(parseKeyId(params.id), change, by);
    if (key === undefined) throw keyNotFound();
    if (key === "no team") throw noTeam();
    if (change.expiresAt !== undefined) await store.keys.keepRunning(key.id);
    if (endsAt !== undefined) await endRunning(key.id, endsAt);
    const fields = { ...actor, keyId: key.id, name: key.name };
    if (change.name !== undefined) log.info("Key renamed", fields);
    if (change.isActive !== undefined) log.info(change.isActive ? "Key activated" : "Key deactivated", fields);
    if (changed.length > 0) log.info("Key changed", { ...fields, changed: changed.join(" ") });
    return maskedKeyBody(key, await readLoad(store, key));
  };

const policySetting = "key_policy";

/** Without a team that is gone. */
export async function readPolicy({ settings, subjects }: Pick<Store, "settings" | "subjects">): Promise<KeyPolicy> {
  const stored = JSON.parse((await settings.find(policySetting)) ?? "{}") as Partial<StoredPolicy>;
  const { member, ...defaults } = { ...noDefaults, ...stored };
  if (await lacksTeam(subjects, defaults)) defaults.team_id = null;
  return { defaults, member: { ...noCeilings, ...member } };
}

/** Policies were stored before members had one. */
type StoredPolicy = KeyDefaults & { member: KeyPolicy["member"] | null };

const lacksTeam = async (subjects: Store["subjects"], { team_id: id }: KeyDefaults): Promise<boolean> =>
  id !== null && (await subjects.list({ kind: "team", id })).length === 0;

export const getKeyPolicy =
  ({ store }: AdminDeps) =>
  (): Promise<KeyPolicy> =>
    readPolicy(store);

export const setKeyPolicy =
  ({ store, log }: AdminDeps) =>
  async ({ json, actor, by }: JsonContext): Promise<KeyPolicy> => {
    const { defaults, member } = parsePolicy(json);
    if (await lacksTeam(store.subjects, defaults)) throw noTeam();
    const isSet = Object.values(member).some((ceiling) => ceiling !== null);
    const stored = { ...defaults, member: isSet ? member : null } satisfies StoredPolicy;
    await store.settings.set(policySetting, JSON.stringify(stored), by);
    log.info("Key policy changed", { ...actor });
    return { defaults, member };
  };

/** The old secret is accepted for `grace_minutes` more. */
export const rotateKey =
  ({ store, log, clock }: AdminDeps) =>
  async ({ json, params, actor, by }: JsonContext & IdContext): Promise<KeyBody> => {
    const graceMinutes = parseRotation(json);
    const now = clock();
    const rotation = { key: generateKey(), now, validUntil: now + graceMinutes * msPerMinute };
    const key = await store.keys.rotate(parseKeyId(params.id), rotation, by);
    if (key === undefined) throw keyNotFound();
    if (key === "collision") throw new ApiError(409, "Key already exists");
    log.info("Key rotated", { ...actor, keyId: key.id, name: key.name, graceMinutes });
    return fullKeyBody(key, await readLoad(store, key));
  };

export const deleteKey =
  ({ store, log, clock, endRunning }: AdminDeps) =>
  async ({
    params,
    query,
    actor,
    by,
  }: ChangeContext & IdContext & { query: KeyDeletionQuery }): Promise<schema.OkBody> => {
    const keyId = parseKeyId(params.id);
    const name = await store.keys.delete(keyId, by);
    if (name === undefined) throw keyNotFound();
    if (query.end_running === "true") await endRunning(keyId, clock());
    log.info("Key deleted", { ...actor, keyId, name });
    return { ok: true };
  };

/** @throws ApiError 404 */
export function parseId(text: string, noun: "Key" | "Team" | "User"): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw new ApiError(404, `${noun} not found`);
  return id;
}

export const parseKeyId = (text: string): number => parseId(text, "Key");

export const keyNotFound = (): ApiError => new ApiError(404, "Key not found");
/** Of a key that was not made. */
export function keyProblem(problem: "collision" | "no team" | "too many"): ApiError {
  if (problem === "no team") return noTeam();
  return new ApiError(409, problem === "collision" ? "Key already exists" : "You have as many keys as you may have");
}
const noTeam = () => new ApiError(400, "team_id must be the id of a team");
