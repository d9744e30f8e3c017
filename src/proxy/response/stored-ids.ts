import { type StoredFolder, storedId } from "../../domain/usage-event.ts";
import { noUsage } from "../../domain/usage.ts";
import type { KeyId } from "../../domain/keys.ts";
import { canonical } from "../rewrite/endpoint.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { findShortJson, maxParsedLength } from "../usage/json-usage.ts";
import { isObject, isResponseId } from "../usage/event-usage.ts";
import type { CountDeps } from "./count.ts";
import { readAlready, readOrRelease } from "./pump.ts";

interface Asked {
  keyId: KeyId;
  method: string;
  /** The URL's pathname. */
  path: string;
  /** The name of the backend that responds; undefined if there is one only. */
  backend: string | undefined;
  /** What the path names was made by the key. */
  isOwn: boolean;
}

/** Which members of a response name a file or batch that its key may ask for from now on. */
function findNamed({ method, path, isOwn }: Asked): { folder: StoredFolder; members: readonly string[] } | undefined {
  const plain = canonical(path);
  if (method === "POST" && plain === "/v1/files") return { folder: "files", members: ["id"] };
  if (method === "POST" && plain === "/v1/batches") return { folder: "batches", members: ["id"] };
  const isBatch = isOwn && method === "GET" && /^\/v1\/batches\/[^/]+$/.test(plain);
  return isBatch ? { folder: "files", members: ["output_file_id", "error_file_id"] } : undefined;
}

/**
 * Remembers where a file or batch is that a response names, before its client learns of it.
 * @returns the response from its start
 * @throws AbortReason if it breaks off
 */
export async function noteStoredIds(
  upstream: UpstreamResponse,
  asked: Asked,
  deps: CountDeps,
): Promise<UpstreamResponse> {
  const named = upstream.response.ok ? findNamed(asked) : undefined;
  if (named === undefined) return upstream;
  const body = await readOrRelease(upstream, maxParsedLength);
  const { keyId, backend } = asked;
  if (body instanceof Uint8Array) {
    const common = { ...noUsage, keyId, closedAt: deps.wall(), requestCount: 0 } as const;
    const ids = named.members.flatMap((name) => idAt(body, name)).map((id) => storedId(named.folder, id));
    const created = { madeAt: undefined, isNew: true, reported: noUsage, backend };
    await Promise.all(ids.map((id) => deps.record({ ...common, created: { ...created, id } })));
  }
  return readAlready(upstream, body);
}

function idAt(body: Uint8Array, member: string): string[] {
  const document = findShortJson(body);
  const id = isObject(document) ? document[member] : undefined;
  return typeof id === "string" && isResponseId(id) ? [id] : [];
}
