import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import { type ErrorDetails, ProxyError } from "../errors.ts";
import { rateLimitHeaders } from "./limit-refusals.ts";
import type { LimitName, Subject } from "../../domain/keys.ts";
import { listModelNames, type ModelNames, resolveModel } from "../rewrite/model-names.ts";

/** Paths that Tollgate serves itself and never forwards. */
export const ownPaths = "/v1/tollgate/";

/** What counts against each limit now; null for a limit that is not set. */
type Used = Readonly<Record<LimitName, number | null>>;

export interface OwnKey {
  used: Used;
  team: { used: Used } | null;
}

const onlyRead: ErrorDetails = { message: "Here only GET and HEAD are supported.", headers: [["allow", "GET, HEAD"]] };

/** Describes a key to its holder, or its models to opencode. @throws ProxyError for all but a GET of these */
export async function respondAtOwnPath(asked: {
  method: string;
  path: string;
  names: ModelNames;
  /** Whether the key may use a model of this name. */
  mayUse: (name: string) => boolean;
  /** Whose limits hold for the key. */
  subjects: readonly Subject[];
  /** What the holder of the key may know of it; undefined if it is gone. */
  find: () => Promise<OwnKey | undefined>;
  wall: WallClock;
  log: Log;
}): Promise<Response> {
  const { method, path, names, mayUse, subjects, find, wall, log } = asked;
  if (path === openCodeModels && method === "GET") return respondWithOpenCodeModels(names, mayUse);
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

/** Where `opencode auth login URL` looks for its configuration. */
export const openCodePath = "/.well-known/opencode";
/** What it asks for with the key, at each start. */
const openCodeModels = "/v1/tollgate/opencode";

const provider = "tollgate";
const env = "TOLLGATE_API_KEY";
/** opencode (1.18) runs it and keeps what it prints; it gives it no input of its own. */
const askForKey = `printf 'Tollgate API key: ' >/dev/tty; read -r key </dev/tty; printf '%s' "$key"`;

/** Anybody may read it: it names no model. @param publicUrl the origin of `/v1` */
export const respondToOpenCode = (publicUrl: string): Response =>
  Response.json({
    auth: { command: ["sh", "-c", askForKey], env },
    config: {
      provider: {
        [provider]: {
          npm: "@ai-sdk/openai-compatible",
          name: "Tollgate",
          options: { baseURL: `${publicUrl}/v1`, apiKey: `{env:${env}}` },
        },
      },
    },
    remote_config: { url: publicUrl + openCodeModels, headers: { authorization: `Bearer {env:${env}}` } },
  });

/** The models that a key may use, for the same configuration. */
function respondWithOpenCodeModels(names: ModelNames, mayUse: (name: string) => boolean): Response {
  const models = listModelNames(names)
    .filter(mayUse)
    .flatMap((name) => {
      const { kind, contextTokens, maxOutputTokens } = resolveModel(name, names).rules;
      const limit = { context: contextTokens, output: maxOutputTokens };
      return kind === "embedding" ? [] : [[name, { name, limit }] as const];
    });
  const headers = { "cache-control": "no-store" };
  return Response.json({ provider: { [provider]: { models: Object.fromEntries(models) } } }, { headers });
}
