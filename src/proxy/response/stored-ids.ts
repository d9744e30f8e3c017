import { type StoredFolder, storedId } from "../../domain/usage-event.ts";
import { noUsage } from "../../domain/usage.ts";
import type { KeyId } from "../../domain/keys.ts";
import { canonical, getEndpoint } from "../rewrite/endpoint.ts";
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

/** Which members of a response name what its key may ask for from now on: by an id, a list of ids, or an object with an `id`. */
function findNamed({ method, path, isOwn }: Asked): { folder: StoredFolder; members: readonly string[] } | undefined {
  const { stored } = getEndpoint(path);
  if (stored === undefined) return undefined;
  const [id = "", action, ...more] = canonical(path).slice(`/v1/${stored}/`.length).split("/");
  if (method === "POST" && id === "") return { folder: stored, members: ["id"] };
  if (more.length > 0) return undefined;
  if (method === "POST" && stored === "uploads" && action === "complete") return { folder: "files", members: ["file"] };
  const members = isOwn && method === "GET" && action === undefined ? results[stored] : undefined;
  return members && { folder: "files", members };
}

/** The members of what is stored that name the files with its results. */
const results: Partial<Record<StoredFolder, readonly string[]>> = {
  batches: ["output_file_id", "error_file_id"],
  "fine_tuning/jobs": ["result_files"],
};

/**
 * Remembers whose and where that is which a response names, before its client learns of it.
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
    const document = findShortJson(body);
    const ids = named.members.flatMap((name) => idsAt(document, name)).map((id) => storedId(named.folder, id));
    const created = { madeAt: undefined, isNew: true, reported: noUsage, backend };
    await Promise.all(ids.map((id) => deps.record({ ...common, created: { ...created, id } })));
  }
  return readAlready(upstream, body);
}

function idsAt(document: unknown, member: string): string[] {
  const values: unknown[] = isObject(document) ? [document[member]].flat() : [];
  return values
    .map((value) => (isObject(value) ? value["id"] : value))
    .filter((id): id is string => typeof id === "string" && isResponseId(id));
}
