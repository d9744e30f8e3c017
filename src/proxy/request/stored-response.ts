import type { Creator, StoredResponse } from "../../domain/usage-event.ts";
import type { Log } from "../../log/log.ts";
import { ProxyError } from "../errors.ts";
import { canonical } from "../rewrite/endpoint.ts";
import type { KeyId } from "../../domain/keys.ts";

/** The keys that created a response under this id. Throws if storage cannot be read. */
export type ListCreators = (responseId: string) => readonly Creator[] | Promise<readonly Creator[]>;

export interface StoredDeps {
  listCreators: ListCreators;
  log: Log;
}

/** A response that a key may ask for. */
export interface OwnResponse extends StoredResponse {
  /** The name of the backend that holds it; undefined if it was not created here, or there was one backend only. */
  backend: string | undefined;
}

const folder = "/v1/responses/";

/**
 * The id of the stored response that a request reads, cancels or deletes.
 * @param path the URL's pathname, under `/v1/responses`
 */
export function findResponseId(method: string, path: string): string | undefined {
  const plain = canonical(path);
  if (!plain.startsWith(folder)) return undefined;
  const [id, action] = plain.slice(folder.length).split("/");
  // Such as `compact`: a create, which no client may block by choosing that word as an id.
  return method === "POST" && action === undefined ? undefined : id;
}

/**
 * The stored response that a key asks for by a path under `/v1/responses`: `madeAt` is set if only a response of that time may be shown.
 *
 * Clients of vLLM and SGLang choose ids, so several keys may create under one id, and the backend then holds the response
 * of one of them. If the first key owned the id, it could block the ids of others; if the last one did, it could take
 * responses over; and if all did, any of them could read what the others created. So each of these keys keeps a right of
 * its own: it is shown a response with the creation time of its own create, and for any other the id does not exist. What
 * cannot be checked before it happens, cancelling and deleting, is refused to all of them. Only creates of one second, or
 * at a backend that names no time, cannot be told apart: their keys, and no others, may use the id. No key saves tokens by
 * that, because each of these reads counts in full (`store/usage/counted-responses.ts`).
 *
 * Creators are known for as long as their counts, a month, deleted keys too. An id that was not created here, not within
 * that time, or in a create that still waits for the database, is everybody's.
 * @throws ProxyError `not_found` if it does not exist for this key; `storage_unavailable` if that cannot be checked
 */
export async function findAskedResponse(
  path: string,
  asker: { keyId: KeyId; method: string },
  deps: StoredDeps,
): Promise<OwnResponse | undefined> {
  const id = findResponseId(asker.method, path);
  return id === undefined ? undefined : { id, ...((await findOwn(id, asker, deps)) ?? unknownHere) };
}

const unknownHere: Omit<OwnResponse, "id"> = { madeAt: undefined, backend: undefined };

/** Like `findAskedResponse`, for whatever a backend holds under an id. @returns undefined if it was not made here */
export async function findOwn(
  id: string,
  { keyId, method }: { keyId: KeyId; method: string },
  { listCreators, log }: StoredDeps,
): Promise<Omit<OwnResponse, "id"> | undefined> {
  let creators: readonly Creator[];
  try {
    creators = await listCreators(id);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.error("Look-up of a stored response failed; request refused", { error: reason });
    const message = "The key that created this response cannot be looked up right now.";
    throw new ProxyError("storage_unavailable", { message, headers: [] });
  }
  if (creators.length === 0) return undefined;
  const own = creators.find((one) => one.keyId === keyId);
  if (own === undefined) throw new ProxyError("not_found");
  const backend = own.backend ?? undefined;
  const others = creators.filter((one) => one !== own && (one.backend ?? undefined) === backend);
  if (others.every(({ madeAt }) => madeAt === own.madeAt)) return { madeAt: undefined, backend };
  if (method !== "GET" || own.madeAt === null) throw new ProxyError("not_found");
  return { madeAt: own.madeAt, backend };
}
