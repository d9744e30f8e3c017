import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import { type ErrorDetails, ProxyError } from "../errors.ts";
import { rateLimitHeaders } from "./admit.ts";
import type { LimitName, Subject } from "../../domain/keys.ts";

/** Paths that Tollgate serves itself and never forwards. */
export const ownPaths = "/v1/tollgate/";

/** What counts against each limit now; null for a limit that is not set. */
type Used = Readonly<Record<LimitName, number | null>>;

export interface OwnKey {
  used: Used;
  team: { used: Used } | null;
}

const onlyRead: ErrorDetails = { message: "Here only GET and HEAD are supported.", headers: [["allow", "GET, HEAD"]] };

/** Describes a key to its holder. @throws ProxyError for all but a GET of `/v1/tollgate/key` */
export async function respondWithOwnKey({
  method,
  path,
  subjects,
  find,
  wall,
  log,
}: {
  method: string;
  path: string;
  /** Whose limits hold for the key. */
  subjects: readonly Subject[];
  /** What the holder of the key may know of it; undefined if it is gone. */
  find: () => Promise<OwnKey | undefined>;
  wall: WallClock;
  log: Log;
}): Promise<Response> {
  if (path !== `${ownPaths}key`) throw new ProxyError("not_found");
  if (method !== "GET" && method !== "HEAD") throw new ProxyError("method_not_allowed", onlyRead);
  const found = await find().catch((error: unknown) => {
    log.warn("Describing a key to its holder failed", {
      error: error instanceof Error ? error.message : String(error),
    });
    throw new ProxyError("storage_unavailable");
  });
  if (found === undefined) throw new ProxyError("invalid_api_key");
  const response = Response.json(found, {
    headers: { "cache-control": "no-store", "x-content-type-options": "nosniff" },
  });
  const used = (name: LimitName, at = 0): number | undefined =>
    (subjects[at]?.team === undefined ? found : found.team)?.used[name] ?? undefined;
  for (const [name, value] of rateLimitHeaders(subjects, used, wall())) response.headers.set(name, value);
  return response;
}
