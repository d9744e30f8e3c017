// Whose request it is: of a key that is somebody's own, or that tells the users behind it apart (`users_from`). A front end says it in headers, which may
// be signed, or in the body; a request that says nothing counts for its key alone.
//
// It keeps true: a forged token makes no user, and is refused wherever it is sent; only a POST has a user; a secret decides
// which headers count; who cannot be told apart, or is one too many, is the user "other" of the key. E-mail is a label.

import {
  defaultUsersMax,
  type FoundUser,
  type KeyId,
  type KeyRules,
  type SeenUser,
  sourceOfKey,
  type Subject,
  subjectOf,
  type UserId,
} from "../../domain/keys.ts";
import { parseJson } from "../../domain/json.ts";
import { hasLimit, lowestPriority, tightestLimits } from "../../domain/limits.ts";
import type { Log } from "../../log/log.ts";
import { msPerMinute } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import { ProxyError } from "../errors.ts";
import { findString } from "../json/bytes.ts";
import { type Party, readJsonInSteps, runByLength } from "../json/read.ts";
import { createSlot } from "../json/slots.ts";
import { type ActiveKey, lookUp } from "./authenticate.ts";

/** Whether a text is signed with a secret: HMAC with SHA-256. @param signature in base64url */
export type IsSigned = (secret: string, text: string, signature: string) => boolean;

type Identity = Pick<SeenUser, "external" | "name">;

/** A longer one is none. */
const maxIdBytes = 256;
const maxNameLength = 120;
/** By how much the clock of a front end may be wrong. */
const skewMs = 60_000;
const openWebUi = "x-openwebui-user-";

/** Tells the headers in which a key reads its user, by its `users_from`: no backend gets them. */
export function userHeadersOf(from: string): (name: string) => boolean {
  // As backends read the other spelling.
  const read = (name: string): string => name.replaceAll("_", "-");
  if (from.startsWith("header:")) return (name) => `header:${read(name)}` === from;
  return (name) => from !== "body" && read(name).startsWith(openWebUi);
}

export interface UsersDeps {
  /** Creates the user that it does not know. Throws if storage fails. */
  seeUser: (seen: SeenUser | UserId) => FoundUser | Promise<FoundUser>;
  isSigned: IsSigned;
  wall: WallClock;
  log: Log;
}

export class Users {
  readonly #deps: UsersDeps;
  /** When an invalid token of a key was logged last. */
  readonly #told = new Map<KeyId, number>();

  constructor(deps: UsersDeps) {
    this.#deps = deps;
  }

  /**
   * The key as it is for the user of a request.
   * @param body undefined: it is not read for that
   * @throws ProxyError `invalid_user_token`, `user_required`, `user_inactive`, or `storage_unavailable`
   */
  async know(key: ActiveKey, { method, headers }: Request, body?: Uint8Array): Promise<ActiveKey> {
    const { id: keyId, rules } = key;
    if (rules === null) return key;
    if (key.userId !== undefined) return this.#keyOf(key.userId, key, rules);
    if (rules.users_from === null) return key;
    const { users_from: from, users_secrets: secrets, users_max: max } = rules;
    const identity = from === "body" ? await identityInBody(body, keyId) : this.#identityIn(headers, key, rules);
    if (method !== "POST") return key;
    if (identity === undefined) {
      if (rules.users_required === true) throw new ProxyError("user_required");
      return key;
    }
    const isTooLong = Buffer.byteLength(identity.external) > maxIdBytes;
    const source = secrets !== null && from.includes("@") ? from : sourceOfKey(keyId);
    const seen = { keyId, source, external: isTooLong ? "" : textOf(identity.external), max: max ?? defaultUsersMax };
    const name = identity.name === undefined ? undefined : textOf(identity.name).slice(0, maxNameLength) || undefined;
    return this.#keyOf({ ...seen, name }, key, rules);
  }

  /** The user's team holds in place of the key's, and the key's limits for its users where the user has none. */
  async #keyOf(seen: SeenUser | UserId, key: ActiveKey, rules: KeyRules): Promise<ActiveKey> {
    const user = await lookUp(this.#deps.seeUser, seen, "User", this.#deps.log);
    if (!user.isActive) throw new ProxyError("user_inactive");
    const { id, limits, priority, team } = user;
    const all = key.subjects ?? [{ id: key.id, limits: rules }];
    const subjects: Subject[] = team === undefined ? [...all] : all.filter((one) => one.team === undefined);
    const own = limits ?? rules.user_limits;
    if (own !== null) subjects.push({ id: subjectOf(id), limits: own, isUser: true });
    if (team !== undefined) subjects.push({ id: subjectOf(team.id), limits: team.limits, team: team.name });
    const limited = subjects.filter((one) => hasLimit(one.limits));
    const { teamId } = team === undefined ? key : { teamId: team.id };
    const of = { id: key.id, userId: id, ...(teamId !== undefined && { teamId }) };
    const tightest = tightestLimits(subjects);
    tightest.priority = lowestPriority([tightest.priority, priority]);
    return { ...of, rules: { ...rules, ...tightest }, subjects: limited };
  }

  #identityIn(headers: Headers, { id }: ActiveKey, { users_from: from, users_secrets: secrets }: KeyRules) {
    if (from?.startsWith("header:") === true) return named(headers.get(from.slice("header:".length)));
    if (secrets === null) {
      const label = headers.get(`${openWebUi}name`) ?? headers.get(`${openWebUi}email`);
      return named(headers.get(`${openWebUi}id`), label === null ? undefined : decoded(label));
    }
    const token = headers.get(`${openWebUi}jwt`);
    if (token === null) return undefined;
    const now = this.#deps.wall();
    const claims = this.#claimsOf(token, secrets, now);
    if (claims !== undefined) return claims;
    if (now - (this.#told.get(id) ?? -Infinity) >= msPerMinute) {
      this.#told.set(id, now);
      this.#deps.log.warn("Invalid user tokens refused; the key's secret and the front end's may differ", {
        keyId: id,
      });
    }
    throw new ProxyError("invalid_user_token");
  }

  /** @returns undefined for a token that is not exactly one of Open WebUI's that holds now */
  #claimsOf(token: string, secrets: readonly string[], now: number): Identity | undefined {
    const [head = "", payload = "", signature = "", ...more] = token.split(".");
    const { alg, crit } = objectOf(head);
    if (more.length > 0 || alg !== "HS256" || crit !== undefined) return undefined;
    const isSigned = secrets.some((secret) => this.#deps.isSigned(secret, `${head}.${payload}`, signature));
    if (!isSigned) return undefined;
    const { iss, exp, sub, name, email } = objectOf(payload);
    if (iss !== "open-webui" || typeof exp !== "number" || exp * 1000 + skewMs <= now) return undefined;
    if (typeof sub !== "string" || sub === "") return undefined;
    return { external: sub, name: [name, email].find((one) => typeof one === "string") };
  }
}

const named = (external: string | null, name?: string): Identity | undefined =>
  external === null || external === "" ? undefined : { external, name };

/** As it is stored: PostgreSQL's text has no null character. */
const textOf = (text: string): string => text.trim().toWellFormed().replaceAll("\0", "\ufffd");

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const objectOf = (part: string): Readonly<Record<string, unknown>> =>
  Object(parseJson(Buffer.from(part, "base64url").toString())) as Record<string, unknown>;

/** OpenAI's members: the older one is still sent by most. Others name a device or a session. */
async function identityInBody(body: Uint8Array | undefined, party: Party): Promise<Identity | undefined> {
  if (body === undefined) return undefined;
  const members = { safety_identifier: createSlot(), user: createSlot() };
  await runByLength(readJsonInSteps(body, createSlot({ members })), body.length, party);
  for (const slot of [members.safety_identifier, members.user]) {
    // One that is too long to be read is none that can be told apart.
    if (slot.kind === "string") return named(findString(body, slot) ?? "x".repeat(maxIdBytes + 1));
  }
  return undefined;
}
