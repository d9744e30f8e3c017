import { type ElysiaCustomStatusResponse, status } from "elysia";
import { subjectOf } from "../../domain/keys.ts";
import type { Key, TeamOrUser } from "../../store/keys/contract.ts";
import { msPerDay, msPerMinute, timestampOf } from "../../time/seoul.ts";
import type { AdminDeps } from "../http/deps.ts";
import { ApiError } from "../http/errors.ts";
import type { Caller, JsonContext } from "../session/auth.ts";
import { fullKeyBody, limitsBody, maskedKeyBody, readLoad, readLoads } from "./body.ts";
import { ceilingsOf, endOfOwn, generateKey, parseOwnKey, parseOwnKeyChange, parseRotation } from "./fields.ts";
import { type IdContext, keyNotFound, keyProblem, parseKeyId, readPolicy } from "./keys.ts";
import { type OwnKey, ownKeyNames, type OwnKeys, type OwnUsage } from "./me-contract.ts";
import { findSubject, readDays, readTeam, usageOfDays } from "./own-key.ts";
import type { KeyBody } from "./contract.ts";

// What somebody who signed in at a provider does with keys of their own, in whatever role. Each handler goes by the user of
// the session alone: the key of another is one that is not there.

interface UserContext {
  user: TeamOrUser;
}

/** Guard after `requireActor`: requires who signed in at a provider. @throws ApiError 403 */
export const requireUser =
  ({ store }: AdminDeps) =>
  async ({ session }: Pick<Caller, "session">): Promise<{ user: TeamOrUser }> => {
    const user = await findSubject(store, "user", session?.userId ?? null);
    if (user === undefined) throw new ApiError(403, "This is for who signs in with OpenID Connect");
    return { user };
  };

export const listOwnKeys =
  ({ store }: AdminDeps) =>
  async ({ user }: UserContext): Promise<OwnKeys> => {
    const all = { after: 0, limit: Number.MAX_SAFE_INTEGER };
    const [policy, keys] = await Promise.all([readPolicy(store), store.keys.list({ ...all, userId: user.id })]);
    const subjects = keys.map(({ id, rules }) => ({ id, limits: rules }));
    const loads = await readLoads(store.limits, subjects);
    return { keys: keys.map((key) => ownKeyOf(maskedKeyBody(key, loads.get(key.id)))), ceilings: ceilingsOf(policy) };
  };

export const createOwnKey =
  ({ store, log, clock }: AdminDeps) =>
  async ({ json, user, actor, by }: JsonContext & UserContext): Promise<ElysiaCustomStatusResponse<201, OwnKey>> => {
    const key = await store.keys.create(parseOwnKey(json, await readPolicy(store), user, clock()), by);
    if (typeof key === "string") throw keyProblem(key);
    log.info("Key created", { ...actor, keyId: key.id, name: key.name });
    return status(201, ownKeyOf(fullKeyBody(key, await readLoad(store, key))));
  };

export const updateOwnKey =
  ({ store, log }: AdminDeps) =>
  async ({ json, params, user, actor, by }: JsonContext & IdContext & UserContext): Promise<OwnKey> => {
    const change = parseOwnKeyChange(json, user);
    const { id } = await findOwn(store, params.id, user);
    const key = await store.keys.update(id, change, by);
    if (key === undefined || key === "no team") throw keyNotFound();
    log.info("Key changed", { ...actor, keyId: id, name: key.name, changed: Object.keys(change).join(" ") });
    return ownKeyOf(maskedKeyBody(key, await readLoad(store, key)));
  };

export const rotateOwnKey =
  ({ store, log, clock }: AdminDeps) =>
  async ({ json, params, user, actor, by }: JsonContext & IdContext & UserContext): Promise<OwnKey> => {
    const graceMinutes = parseRotation(json);
    const [{ id }, policy, now] = [await findOwn(store, params.id, user), await readPolicy(store), clock()];
    const term = { now, validUntil: now + graceMinutes * msPerMinute, expiresAt: endOfOwn(policy, now) };
    const key = await store.keys.rotate(id, { key: generateKey(), ...term }, by);
    if (key === undefined) throw keyNotFound();
    if (key === "collision") throw keyProblem(key);
    log.info("Key rotated", { ...actor, keyId: id, name: key.name, graceMinutes });
    return ownKeyOf(fullKeyBody(key, await readLoad(store, key)));
  };

export const getOwnUsage =
  ({ store, clock, signIn }: AdminDeps) =>
  async ({ user }: UserContext): Promise<OwnUsage> => {
    const now = clock();
    // Its counts and limits are those of the one that it is linked to.
    const { id, name, teamId, limits } = (await findSubject(store, "user", user.sameAs)) ?? user;
    const [days, [load], team, daysOfTeam] = await Promise.all([
      readDays(store.limits, subjectOf(id), now),
      store.limits.listLoads([subjectOf(id)]),
      readTeam(store, teamId),
      teamId === null ? [] : readDays(store.limits, subjectOf(teamId), now),
    ]);
    return {
      name,
      now: timestampOf(now),
      keys_end_at:
        signIn === undefined || user.isAskedAbout
          ? null
          : timestampOf((user.refreshCheckedAt ?? 0) + signIn.memberKeysDays * msPerDay),
      ...limitsBody(limits, load),
      refused_today: load?.refusedToday ?? 0,
      ...usageOfDays(days, now),
      team: team && { ...team, ...usageOfDays(daysOfTeam, now) },
    };
  };

/** @throws ApiError 404 */
async function findOwn({ keys }: AdminDeps["store"], text: string, user: TeamOrUser): Promise<Key> {
  const id = parseKeyId(text);
  const [key] = await keys.list({ after: id - 1, userId: user.id, limit: 1 });
  if (key?.id !== id) throw keyNotFound();
  return key;
}

const ownKeyOf = (body: KeyBody): OwnKey => Object.fromEntries(ownKeyNames.map((name) => [name, body[name]])) as OwnKey;
