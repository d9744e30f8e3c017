// Whose is what backends store, and which backend has it. Responses, files and batches are the key's that made them, and so
// are the files that a batch of its own names; for another key they do not exist. What nobody here made is everybody's.
//
// The first row that is committed owns an id (`store/usage/stored.ts`). A request is asked for the ids in its path and in
// its body together, after the limits of its key; what its answer makes is noted before its client learns the id. Nothing
// else knows of ids. Conversations, vector stores and the like were followed too, until each way round that was found led to
// another reader: they are open, or closed by paths.

import type { KeyId } from "../domain/keys.ts";
import type { Backend } from "../domain/models.ts";
import type { Owner } from "../domain/usage-event.ts";
import { noUsage } from "../domain/usage.ts";
import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { ProxyError } from "./errors.ts";
import { decodeString, lowerCaseName } from "./json/bytes.ts";
import { readNamedStrings, runByLength, type Steps } from "./json/read.ts";
import type { RecordUsage } from "./response/count.ts";
import { readAlready, readOrRelease } from "./response/pump.ts";
import { canonical, getEndpoint } from "./rewrite/endpoint.ts";
import { kindOf } from "./stream/body-kind.ts";
import { Passage } from "./stream/passage.ts";
import type { UpstreamResponse } from "./upstream/forward.ts";
import { findShortJson, isObject, maxParsedLength } from "./stream/usage.ts";

export interface StoredDeps {
  /** Whose each of the ids is; undefined: it was not made here. Throws if storage cannot be read. */
  findOwners: (ids: readonly string[]) => Promise<readonly (Owner | undefined)[]>;
  countOwned: (keyId: KeyId) => Promise<number>;
  record: RecordUsage;
  wall: WallClock;
  log: Log;
}

/** The folders whose ids are owned. Each has its own: who chooses the id of a response takes no file by that. */
const pathPattern = /^\/v1\/(responses|files|batches|messages\/batches)(?:\/([^/]+)(?:\/(.*))?)?$/;

/** The members of bodies, at any depth and in any case, that name what is stored: by an id, or a list of ids. */
const namingMembers: ReadonlyMap<string, string> = new Map([
  ["previous_response_id", "responses"],
  // vLLM and SGLang let the client of a create choose its id.
  ["request_id", "responses"],
  ["file_id", "files"],
  ["file_ids", "files"],
  ["input_file_id", "files"],
  ["training_file", "files"],
  ["validation_file", "files"],
]);
/** How one of them may begin, an escape too: most other names need not be decoded. */
const begin = new Uint8Array(256);
for (const letter of [...namingMembers.keys(), "\\"].map((name) => name.charAt(0)))
  for (const one of [letter, letter.toUpperCase()]) begin[one.charCodeAt(0)] = 1;

interface StoredPath {
  folder: string;
  id: string | undefined;
  /** What is below the id. */
  action: string | undefined;
  isCreate: boolean;
}

/** @param path the URL's pathname */
export function findStoredPath(method: string, path: string): StoredPath | undefined {
  const [, folder, name, action] = pathPattern.exec(canonical(path)) ?? [];
  if (folder === undefined) return undefined;
  // Such as `/v1/responses/compact`, which no client may block by choosing that word as an id.
  const isOfApi = folder === "responses" && method === "POST" && action === undefined;
  const isCreate = method === "POST" && (name === undefined || (isOfApi && name === "compact"));
  return { folder, id: isOfApi ? undefined : name, action, isCreate };
}

/** Longer ones are not ids. */
const maxIdLength = 512;

/** As far as a path can name it. Those of responses stand alone, as they did before others were known. */
function findStoredId(folder: string, value: unknown): string | undefined {
  const id = typeof value === "string" ? value.split("/").find((part) => part !== "") : undefined;
  if (id === undefined || id.length > maxIdLength) return undefined;
  return folder === "responses" ? id : `${folder}/${id}`;
}

/** What a request names. */
interface Named {
  /** By `findStoredId`. */
  id: string;
  /** The member of the body; undefined for the path. */
  member: string | undefined;
}

interface Asked {
  keyId: KeyId;
  method: string;
  /** The URL's pathname. */
  path: string;
  /** Undefined: it was not read. */
  body: Uint8Array | undefined;
}

const maxNamed = 1000;

/**
 * What a request names in its path and, where bodies refer to what is stored, in its body.
 * @returns a promise for a body that takes long to read
 * @throws ProxyError if the body names more than 1000
 */
export function namesIn(
  { keyId, method, path, body }: Asked,
  stored = findStoredPath(method, path),
): readonly Named[] | Promise<readonly Named[]> {
  const id = stored && findStoredId(stored.folder, stored.id);
  const inPath = id === undefined ? [] : [{ id, member: undefined }];
  if (method !== "POST" || body === undefined || !getEndpoint(path).refers) return inPath;
  return runByLength(namesInSteps(body, stored?.folder === "responses", inPath), body.length, keyId);
}

function* namesInSteps(bytes: Uint8Array, isResponse: boolean, inPath: readonly Named[]): Steps<readonly Named[]> {
  const named = new Map<string, Named>();
  yield* readNamedStrings<string>(bytes, {
    find(start, end) {
      const member = begin[bytes[start] ?? 0] === 1 ? lowerCaseName(bytes, start, end) : "";
      return namingMembers.has(member) && (isResponse || member !== "request_id") ? member : undefined;
    },
    onString(member, start, end) {
      const text = end - start > 6 * maxIdLength ? undefined : decodeString(bytes, { start, end });
      const id = findStoredId(namingMembers.get(member) ?? "", text);
      if (id !== undefined) named.set(`${member} ${id}`, { id, member });
      if (named.size <= maxNamed) return;
      throw new ProxyError("invalid_request", { message: `The body names more than ${maxNamed} ids.` });
    },
  });
  // A path counts for more than a body.
  return [...named.values(), ...inPath];
}

/** What is known of what a request names, and may make. */
export interface Found {
  keyId: KeyId;
  path: StoredPath | undefined;
  /** It names something. */
  refers: boolean;
  /** The backend that has it, so that what is made of it is there too; undefined: any. */
  backend: string | undefined;
  /** What the path names was made by the key. */
  isOwnPath: boolean;
  /** What it makes is stored. */
  makes: boolean;
}

export type StoredIds = ReturnType<typeof createStoredIds>;

export function createStoredIds(deps: StoredDeps) {
  const requireRoom = createRoom(deps);
  return {
    /**
     * Finds what a request names, all of it in one query.
     * @param asked with `keeps`: whether the backend keeps what it makes
     * @param beforeLookUp called if it names anything
     * @throws ProxyError `not_found` if another key has any of it, or its backend is gone; `member_not_allowed` if it would be
     * made again; `storage_unavailable` if that cannot be read; `too_many_stored` if its key may make no more
     */
    async find(
      asked: Asked & { keeps: boolean },
      backends: readonly Backend[],
      beforeLookUp: () => Promise<void>,
    ): Promise<Found> {
      const { keyId, keeps } = asked;
      const path = findStoredPath(asked.method, asked.path);
      const named = await namesIn(asked, path);
      const makes = keeps && path?.isCreate === true;
      const found: Found = { keyId, path, refers: named.length > 0, backend: undefined, isOwnPath: false, makes };
      if (found.refers) {
        await beforeLookUp();
        await lookUp(named, found, deps);
      }
      if (makes) await requireRoom(keyId);
      if (found.backend === undefined || backends.some(({ name }) => name === found.backend)) return found;
      const message = `What this id names is at the backend ${found.backend}, which is no longer configured.`;
      throw new ProxyError("not_found", { message });
    },
    /**
     * Notes what an answer says that the key has from now on, before the client learns of it.
     * @param backend undefined: there is one only
     * @throws AbortReason if the answer is read for that and breaks off
     */
    async announce(
      upstream: UpstreamResponse,
      { path, keyId, makes, isOwnPath }: Found,
      backend: string | undefined,
    ): Promise<Announced> {
      if (path === undefined || !upstream.response.ok || upstream.response.body === null) return { upstream };
      const { folder, action } = path;
      const note = (ids: readonly string[]): Promise<unknown> => own(ids, { keyId, backend }, deps);
      if (makes) return announceCreated(upstream, folder, note);
      const showsBatch = isOwnPath && folder.endsWith("batches") && (action === undefined || action === "cancel");
      if (!showsBatch) return { upstream };
      const body = await readOrRelease(upstream, maxParsedLength);
      const batch = body instanceof Uint8Array ? findShortJson(body) : undefined;
      const files = isObject(batch) ? [batch["output_file_id"], batch["error_file_id"]] : [];
      const ids = files.map((id) => findStoredId("files", id)).filter((id) => id !== undefined);
      if (ids.length > 0) await note(ids);
      return { upstream: readAlready(upstream, body) };
    },
  };
}

/** The id of the response that a request reads; undefined if it reads none. */
export const readIdOf = ({ path }: Found): string | undefined =>
  path?.folder === "responses" ? findStoredId(path.folder, path.id) : undefined;

/** @param found is told what is found */
async function lookUp(named: readonly Named[], found: Found, deps: StoredDeps): Promise<void> {
  const { keyId } = found;
  const owners = await deps.findOwners(named.map(({ id }) => id)).catch((error: unknown) => {
    deps.log.error("Look-up of stored ids failed; request refused", { error: String(error) });
    const message = "The key that made what this id names cannot be looked up right now.";
    throw new ProxyError("storage_unavailable", { message, headers: [] });
  });
  for (const [index, { id, member }] of named.entries()) {
    const owner = owners[index];
    if (owner === undefined) continue;
    if (owner.keyId !== keyId) throw member === "request_id" ? idIsTaken() : new ProxyError("not_found");
    const backend = owner.backend ?? undefined;
    if (deps.wall() - owner.usedAt >= dayMs) void own([id], { keyId, backend }, deps);
    if (member === "request_id") continue;
    found.isOwnPath ||= member === undefined;
    // Backends differ in which of several they use. The last one that was made here counts for most.
    found.backend = backend ?? found.backend;
  }
}

const idIsTaken = (): ProxyError =>
  new ProxyError("member_not_allowed", {
    message: "request_id: this id is in use; choose another one, or leave it out.",
    members: { param: "request_id" },
  });

const maxOwned = 1_000_000;
const [recountMs, dayMs] = [60_000, 86_400_000];

/**
 * Holds keys to the number of ids that they may own: counted once a minute, and its own creates until then.
 * @returns throws ProxyError `too_many_stored` for a create of a key that has reached it
 */
export function createRoom({ countOwned, wall }: Pick<StoredDeps, "countOwned" | "wall">) {
  const rooms = new Map<KeyId, { countedAt: number; owned: Promise<number>; more: number }>();
  return async (keyId: KeyId): Promise<void> => {
    let room = rooms.get(keyId);
    if (room === undefined || wall() - room.countedAt >= recountMs) {
      // Without the database, everything goes on.
      room = { countedAt: wall(), owned: countOwned(keyId).catch(() => 0), more: 0 };
      rooms.set(keyId, room);
    }
    const more = (room.more += 1);
    if ((await room.owned) + more > maxOwned) throw new ProxyError("too_many_stored");
  };
}

const own = (
  ids: readonly string[],
  { keyId, backend }: { keyId: KeyId; backend: string | undefined },
  { record, wall }: StoredDeps,
): Promise<unknown> => record({ ...noUsage, keyId, closedAt: wall(), requestCount: 0, owned: { ids, backend } });

/** An answer from its start, and what tells the id that a create has made, once that is known. */
export interface Announced {
  upstream: UpstreamResponse;
  created?: () => string | undefined;
}

/** Keeps back the bytes that complete the first text with an id, an event or the whole, until that is noted. */
function announceCreated(
  upstream: UpstreamResponse,
  folder: string,
  note: (ids: string[]) => Promise<unknown>,
): Announced {
  const { headers, body } = upstream.response;
  const kind = kindOf(headers.get("content-type"), headers.get("content-encoding"));
  let created: string | undefined;
  let noted: Promise<unknown> | undefined;
  function onDocument(document: unknown): void {
    if (created !== undefined || !isObject(document)) return;
    const made = isObject(document["response"]) ? document["response"] : document;
    created = findStoredId(folder, made["id"]);
    if (created !== undefined) noted = note([created]);
  }
  const texts = new Passage(kind, { listener: { observer: { onDocument } } });
  async function read(part: Uint8Array | undefined): Promise<void> {
    if (part === undefined) await texts.end();
    else texts.push(part);
    await texts.backlog;
  }
  const source = (body as ReadableStream<Uint8Array>).getReader();
  const passed = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await source.read();
        if (noted === undefined) await read(value);
        await noted;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return { upstream: { ...upstream, response: new Response(passed, upstream.response) }, created: () => created };
}
