import { storedFolders, storedId } from "../../domain/usage-event.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { Backend } from "../../domain/models.ts";
import { ProxyError } from "../errors.ts";
import { findString } from "../json/bytes.ts";
import { readJsonInSteps, runByLength } from "../json/read.ts";
import { createSlot } from "../json/slots.ts";
import { canonical } from "../rewrite/endpoint.ts";
import type { ReadBody } from "./hold-or-stream.ts";
import { findOwn, type OwnResponse, type StoredDeps } from "./stored-response.ts";

interface Asked {
  keyId: KeyId;
  method: string;
  /** The URL's pathname. */
  path: string;
  body: ReadBody;
  /** The response that the path names. */
  stored: OwnResponse | undefined;
}

/**
 * The backend that holds what a request refers to by an id: a response, a file, or a batch, which has to be where its
 * input is.
 * @returns undefined if it refers to nothing that was made here
 * @throws ProxyError `not_found` if that is another key's, or its backend is gone
 */
export async function findBackendOfId(
  asked: Asked,
  backends: readonly Backend[],
  deps: StoredDeps,
): Promise<string | undefined> {
  const backend = asked.stored === undefined ? await findBackend(asked, deps) : asked.stored.backend;
  if (backend === undefined || backends.some(({ name }) => name === backend)) return backend;
  const message = `What this id names is at the backend ${backend}, which is no longer configured.`;
  throw new ProxyError("not_found", { message });
}

async function findBackend({ keyId, method, path, body }: Asked, deps: StoredDeps): Promise<string | undefined> {
  const plain = canonical(path);
  const id = findIdInPath(plain) ?? (method === "POST" ? await findIdInBody(plain, body) : undefined);
  // Like a cancellation or a deletion, this cannot be checked before it happens.
  return id === undefined ? undefined : (await findOwn(id, { keyId, method: "POST" }, deps)).backend;
}

function findIdInPath(plain: string): string | undefined {
  for (const folder of storedFolders) {
    const prefix = `/v1/${folder}/`;
    const [id = ""] = plain.startsWith(prefix) ? plain.slice(prefix.length).split("/") : [];
    if (id !== "") return storedId(folder, id);
  }
  return undefined;
}

/**
 * Whether a request under `/v1/responses` may go on from a response, which may be another key's. A name in JSON may have
 * escapes.
 */
export const mayGoOn = (body: ReadBody): boolean =>
  body instanceof Uint8Array &&
  [previousResponse, "\\u"].some((part) => Buffer.from(body.buffer, body.byteOffset, body.length).includes(part));

const previousResponse = "previous_response_id";

async function findIdInBody(plain: string, body: ReadBody): Promise<string | undefined> {
  if (!(body instanceof Uint8Array)) return undefined;
  if (plain.startsWith("/v1/responses")) return findMember(body, previousResponse);
  const file = plain === "/v1/batches" ? await findMember(body, "input_file_id") : undefined;
  return file === undefined ? undefined : storedId("files", file);
}

/** The last of several members of one name counts, as for most backends. */
async function findMember(bytes: Uint8Array, name: string): Promise<string | undefined> {
  const slot = createSlot();
  const steps = readJsonInSteps(bytes, createSlot({ members: { [name]: slot } }));
  return (await runByLength(steps, bytes.length)) ? findString(bytes, slot) : undefined;
}
