import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { Log } from "../log/log.ts";
import type { Key, KeyStore, Store } from "../store/store.ts";
import type { WallClock } from "../time/clock.ts";
import { timestampOf } from "../time/seoul.ts";
import type { Actor } from "./auth.ts";
import { acceptedBody, type JsonObject } from "./body.ts";
import { ApiError } from "./errors.ts";
import { streamJson } from "./json-stream.ts";
import type { KeyBody, OkBody } from "./schemas.ts";

const maxNameCodePoints = 120;
const maxKeyLength = 512;

/** Formatting a slice takes about a millisecond; streams run between two slices. */
const keysPerSlice = 100;

export interface KeyDeps {
  store: Pick<Store, "keys">;
  log: Log;
}

interface ActorContext {
  actor: Actor;
}

interface JsonContext extends ActorContext {
  json: JsonObject | ApiError;
}

interface IdContext {
  params: { id: string };
}

export const listKeys =
  ({ store, log }: KeyDeps) =>
  ({ request }: { request: Request }): Promise<Response> =>
    streamJson(request, ["[", maskedKeysJson(store.keys), "]"], log);

export const createKey =
  ({ store, log, clock }: KeyDeps & { clock: WallClock }) =>
  async ({ json, actor }: JsonContext): Promise<ElysiaCustomStatusResponse<201, KeyBody>> => {
    const key = await store.keys.create({ ...parseNewKey(acceptedBody(json)), createdAt: clock() });
    if (key === "collision") throw new ApiError(409, "Key already exists");
    log.info("Key created", { ...actor, keyId: key.id, name: key.name });
    return status(201, fullKeyBody(key));
  };

export const updateKey =
  ({ store, log }: KeyDeps) =>
  async ({ json, params, actor }: JsonContext & IdContext): Promise<KeyBody> => {
    const change = parseKeyChange(acceptedBody(json));
    const key = await store.keys.update(parseKeyId(params.id), change);
    if (key === undefined) throw keyNotFound();
    const fields = { ...actor, keyId: key.id, name: key.name };
    if (change.name !== undefined) log.info("Key renamed", fields);
    if (change.isActive !== undefined) log.info(change.isActive ? "Key activated" : "Key deactivated", fields);
    return maskedKeyBody(key);
  };

export const deleteKey =
  ({ store, log }: KeyDeps) =>
  async ({ params, actor }: ActorContext & IdContext): Promise<OkBody> => {
    const keyId = parseKeyId(params.id);
    const name = await store.keys.delete(keyId);
    if (name === undefined) throw keyNotFound();
    log.info("Key deleted", { ...actor, keyId, name });
    return { ok: true };
  };

function parseNewKey({ name, key }: JsonObject): { name: string; key: string } {
  if (name === undefined) throw new ApiError(400, "name is required");
  return { name: parseName(name), key: key === undefined ? generateKey() : parseKey(key) };
}

function parseKeyChange({ name, is_active: isActive }: JsonObject): { name?: string; isActive?: boolean } {
  if (name === undefined && isActive === undefined) throw new ApiError(400, "No fields to update");
  if (isActive !== undefined && typeof isActive !== "boolean") throw new ApiError(400, "is_active must be a boolean");
  return { ...(name !== undefined && { name: parseName(name) }), ...(isActive !== undefined && { isActive }) };
}

function parseKeyId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw keyNotFound();
  return id;
}

function parseName(value: unknown): string {
  if (typeof value !== "string") throw new ApiError(400, "name must be a string");
  const name = value.trim().toWellFormed();
  if (name === "") throw new ApiError(400, "name must not be empty");
  if (Array.from(name).length > maxNameCodePoints)
    throw new ApiError(400, `name must be at most ${maxNameCodePoints} characters`);
  // PostgreSQL cannot store them in text, and SQLite's functions stop at them.
  if (name.includes("\0")) throw new ApiError(400, "name must not contain null characters");
  return name;
}

function parseKey(value: unknown): string {
  if (typeof value !== "string" || value === "") throw new ApiError(400, "key must be a non-empty string");
  if (!/^[\x21-\x7e]+$/.test(value)) throw new ApiError(400, "key must contain only visible ASCII characters");
  if (value.length > maxKeyLength) throw new ApiError(400, `key must be at most ${maxKeyLength} characters`);
  return value;
}

const generateKey = () => crypto.randomUUID().replaceAll("-", "");

const keyNotFound = () => new ApiError(404, "Key not found");

/** With the key in full: only for the response that creates it. */
function fullKeyBody(key: Key): KeyBody {
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
  };
}

const maskedKeyBody = (key: Key): KeyBody => ({ ...fullKeyBody(key), key: maskKey(key.key) });

/** Eight characters would reveal too much of a short key. */
export function maskKey(key: string): string {
  return key.length < 16 ? "…" : `${key.slice(0, 4)}…${key.slice(-4)}`;
}

/** All keys as JSON: masked objects in the API's shape, separated by commas, without the brackets. Reads on demand. */
export async function* maskedKeysJson({ list }: Pick<KeyStore, "list">): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  let after = 0;
  for (;;) {
    const keys = await list({ after, limit: keysPerSlice });
    const last = keys.at(-1);
    if (last === undefined) return;
    const separator = after === 0 ? "" : ",";
    yield encoder.encode(separator + keys.map((key) => JSON.stringify(maskedKeyBody(key))).join(","));
    after = last.id;
  }
}
