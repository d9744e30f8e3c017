import { findCredential } from "../../credentials.ts";
import type { Log } from "../../log/log.ts";
import { ProxyError } from "../errors.ts";

export interface AuthenticateDeps {
  /** Undefined for an unknown and for an inactive key alike. Throws where storage cannot tell. */
  findKey: (key: string) => { id: number } | undefined | Promise<{ id: number } | undefined>;
  log: Log;
}

/**
 * Who may pass.
 * @throws Refusal the same for a key that is missing, unknown or inactive; another where storage cannot tell
 */
export async function authenticate(headers: Headers, { findKey, log }: AuthenticateDeps): Promise<{ id: number }> {
  const credential = findCredential(headers);
  if (credential === undefined) throw new ProxyError("invalid_api_key");
  let key: { id: number } | undefined;
  try {
    key = await findKey(credential);
  } catch (error) {
    log.error("A key could not be looked up", { error: error instanceof Error ? error.message : String(error) });
    throw new ProxyError("storage_unavailable");
  }
  if (key === undefined) throw new ProxyError("invalid_api_key");
  return key;
}
