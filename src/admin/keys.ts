import { timestampOf } from "../time/seoul.ts";
import type { Key, KeyStore } from "../store/store.ts";
import type { JsonObject } from "./body.ts";
import { ApiError } from "./errors.ts";
import type { KeyBody } from "./schemas.ts";

const maxNameCodePoints = 120;
const maxKeyLength = 512;

/** @throws ApiError 400 */
export function parseNewKey({ name, key }: JsonObject): { name: string; key: string } {
  if (name === undefined) throw new ApiError(400, "name is required");
  return { name: parseName(name), key: key === undefined ? generateKey() : parseKey(key) };
}

/** @throws ApiError 400 */
export function parseKeyChange({ name, is_active: isActive }: JsonObject): { name?: string; isActive?: boolean } {
  if (name === undefined && isActive === undefined) throw new ApiError(400, "No fields to update");
  if (isActive !== undefined && typeof isActive !== "boolean") throw new ApiError(400, "is_active must be a boolean");
  return { ...(name !== undefined && { name: parseName(name) }), ...(isActive !== undefined && { isActive }) };
}

/** @throws ApiError 404 where no key can have this id */
export function parseKeyId(text: string): number {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(id)) throw keyNotFound();
  return id;
}

export const keyNotFound = (): ApiError => new ApiError(404, "Key not found");

/** The key in full: only for the answer that creates it. */
export function fullKeyBody(key: Key): KeyBody {
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

export const maskedKeyBody = (key: Key): KeyBody => ({ ...fullKeyBody(key), key: maskKey(key.key) });

/** A millisecond of work: streams get their turn between two slices. */
const keysPerSlice = 100;

/** All keys as JSON: masked objects in the API's shape, separated by commas, without the brackets; read on demand. */
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

/** Of a short key eight characters would give too much away. */
export function maskKey(key: string): string {
  return key.length < 16 ? "…" : `${key.slice(0, 4)}…${key.slice(-4)}`;
}

function parseName(value: unknown): string {
  if (typeof value !== "string") throw new ApiError(400, "name must be a string");
  const name = value.trim().toWellFormed();
  if (name === "") throw new ApiError(400, "name must not be empty");
  if (Array.from(name).length > maxNameCodePoints)
    throw new ApiError(400, `name must be at most ${maxNameCodePoints} characters`);
  // PostgreSQL's text cannot hold it, and SQLite's functions stop at it.
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
