import { storedId } from "../../domain/usage-event.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Backend } from "../../domain/models.ts";
import { ProxyError } from "../errors.ts";
import { eventLoopPortions } from "../json/read.ts";
import { canonical, getEndpoint } from "../rewrite/endpoint.ts";
import { findOwn, type OwnResponse, type StoredDeps } from "./stored-response.ts";

interface Asked {
  keyId: KeyId;
  method: string;
  /** The URL's pathname. */
  path: string;
  /** What the body refers to, by `storedId`. */
  references: readonly string[];
  /** The response that the path names. */
  stored: OwnResponse | undefined;
}

/** Where that is which a request refers to. */
export type Holder = Pick<OwnResponse, "backend">;

/**
 * The backend that holds what a request refers to by an id, in its path or in its body: what it makes of that has to be
 * there too.
 * @returns undefined if it refers to nothing that was made here
 * @throws ProxyError `not_found` if that is another key's, or its backend is gone
 */
export async function findHolder(
  asked: Asked,
  backends: readonly Backend[],
  deps: StoredDeps,
): Promise<Holder | undefined> {
  const holder = asked.stored ?? (await findNamed(asked, deps));
  const backend = holder?.backend;
  if (backend === undefined || backends.some(({ name }) => name === backend)) return holder;
  const message = `What this id names is at the backend ${backend}, which is no longer configured.`;
  throw new ProxyError("not_found", { message });
}

/** With SQLite, so many look-ups take the main thread as long as a portion of a long body. */
const lookUpsAtOnce = 256;

async function findNamed({ keyId, path, references }: Asked, deps: StoredDeps): Promise<Holder | undefined> {
  const inPath = findIdInPath(path);
  let holder: Holder | undefined;
  let lookUps = 0;
  // Backends differ in which of several they use: all must be the key's own. The last one that was made here counts for most.
  for (const id of new Set([...references, ...(inPath === undefined ? [] : [inPath])])) {
    if (lookUps++ % lookUpsAtOnce === lookUpsAtOnce - 1) await eventLoopPortions.waitForTurn(keyId);
    // Like a cancellation or a deletion, this cannot be checked before it happens.
    holder = (await findOwn(id, { keyId, method: "POST" }, deps)) ?? holder;
  }
  return holder;
}

function findIdInPath(path: string): string | undefined {
  const { stored } = getEndpoint(path);
  if (stored === undefined) return undefined;
  const [id = ""] = canonical(path).slice(`/v1/${stored}/`.length).split("/");
  return id === "" ? undefined : storedId(stored, id);
}
