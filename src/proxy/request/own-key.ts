import type { Log } from "../../log/log.ts";
import { ProxyError } from "../errors.ts";

/** Paths that Tollgate serves itself and never forwards. */
export const ownPaths = "/v1/tollgate/";

export interface OwnKeyRequest {
  method: string;
  path: string;
  /** What the holder of the key may know of it; undefined if it is gone. */
  find: () => Promise<object | undefined>;
  log: Log;
}

/** Describes a key to its holder. @throws ProxyError for all but a GET of `/v1/tollgate/key` */
export async function respondWithOwnKey({ method, path, find, log }: OwnKeyRequest): Promise<Response> {
  if (path !== `${ownPaths}key`) throw new ProxyError("not_found");
  if (method !== "GET" && method !== "HEAD") throw new ProxyError("method_not_allowed");
  const found = await find().catch((error: unknown) => {
    log.warn("Describing a key to its holder failed", {
      error: error instanceof Error ? error.message : String(error),
    });
    throw new ProxyError("storage_unavailable");
  });
  if (found === undefined) throw new ProxyError("invalid_api_key");
  return Response.json(found, { headers: { "cache-control": "no-store", "x-content-type-options": "nosniff" } });
}
