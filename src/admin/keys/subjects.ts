import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { SubjectProblem, TeamOrUser } from "../../store/keys/contract.ts";
import type { Store } from "../../store/store.ts";
import { timestampOf } from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import * as schema from "../http/schemas.ts";
import { sourceOfKey, subjectOf } from "../../domain/keys.ts";
import { limitsBody, readLoads } from "./body.ts";
import { parseSubject } from "./fields.ts";
import type { ChangeContext, JsonContext } from "../session/auth.ts";
import type { AdminDeps } from "../http/deps.ts";
import { type IdContext, parseId } from "./keys.ts";
import type { ForgetQuery, TeamBody, TeamsBody, UserBody, UsersBody, UsersQuery } from "./subjects-contract.ts";

type BothBodies = ReturnType<typeof bothOf>;

/** What teams and users differ in. */
interface Kind<Body> {
  kind: TeamOrUser["kind"];
  noun: "Team" | "User";
  bodyOf: (subject: TeamOrUser, both: BothBodies) => Body;
}

const teams: Kind<TeamBody> = {
  kind: "team",
  noun: "Team",
  bodyOf: ({ createdAt, keyCount }, both) => ({ ...both, created_at: timestampOf(createdAt), key_count: keyCount }),
};

const users: Kind<UserBody> = {
  kind: "user",
  noun: "User",
  bodyOf: (user, both) => ({
    ...both,
    source: user.source ?? "",
    external: user.external ?? "",
    key_id: user.keyId,
    team_id: user.teamId,
    same_as: user.sameAs,
    team_by_provider: user.signedInAt !== null && user.teamByProvider,
    signed_in_at: user.signedInAt === null ? null : timestampOf(user.signedInAt),
    is_active: user.isActive,
    first_seen_at: timestampOf(user.createdAt),
    last_seen_at: user.lastSeenAt === null ? null : timestampOf(user.lastSeenAt),
  }),
};

const bothOf = ({ id, name, limits, note, tags }: TeamOrUser, load: Parameters<typeof limitsBody>[1]) => ({
  id,
  name,
  ...limitsBody(limits, load),
  notify: limits.notify === true,
  refused_today: load?.refusedToday ?? 0,
  note,
  tags: [...tags],
});

async function bodiesOf<Body>(
  { limits }: Store,
  { bodyOf }: Kind<Body>,
  subjects: readonly TeamOrUser[],
): Promise<Body[]> {
  const loads = await readLoads(
    limits,
    subjects.map((one) => ({ id: subjectOf(one.id), limits: one.limits })),
  );
  return subjects.map((one) => bodyOf(one, bothOf(one, loads.get(subjectOf(one.id)))));
}

/** @throws ApiError 404 for undefined, 409 or 400 for a problem */
async function oneBody<Body>(
  store: Store,
  of: Kind<Body>,
  subject: TeamOrUser | SubjectProblem | undefined,
): Promise<Body> {
  if (subject === "collision") throw new ApiError(409, isTaken[of.kind]);
  if (subject === "unsigned") throw new ApiError(409, "A user without a signed identity cannot be one who signs in");
  if (typeof subject === "string") throw new ApiError(400, notThere[subject]);
  const [body] = subject === undefined ? [] : await bodiesOf(store, of, [subject]);
  if (body === undefined) throw new ApiError(404, `${of.noun} not found`);
  return body;
}

const isTaken = { team: "A team with this name already exists", user: "This user already exists" };
const notThere = {
  "no team": "team_id must be the id of a team",
  "no key": "key_id must be the id of a key",
  "no user": "same_as must be the id of another user, which is itself linked to none",
};

export const listTeams =
  ({ store }: AdminDeps) =>
  async (): Promise<TeamsBody> => ({
    teams: await bodiesOf(store, teams, await store.subjects.list({ kind: "team" })),
  });

export const listUsers =
  ({ store }: AdminDeps) =>
  async ({ query }: { query: UsersQuery }): Promise<UsersBody> => {
    const { key: keyId, team: teamId, q, limit, cursor } = query;
    const filter = { kind: "user", keyId, teamId, text: q, after: Number(cursor ?? 0), limit: limit + 1 } as const;
    const found = await store.subjects.list(filter);
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return { users: await bodiesOf(store, users, page), next_cursor: last === undefined ? null : String(last.id) };
  };

const getOne =
  <Body>(of: Kind<Body>) =>
  ({ store }: AdminDeps) =>
  async ({ params }: IdContext): Promise<Body> =>
    oneBody(store, of, (await store.subjects.list({ kind: of.kind, id: parseId(params.id, of.noun) }))[0]);

const createOne =
  <Body extends { id: number; name: string }>(of: Kind<Body>) =>
  ({ store, log, clock }: AdminDeps) =>
  async ({ json, actor, by }: JsonContext): Promise<ElysiaCustomStatusResponse<201, Body>> => {
    const now = clock();
    const given = parseSubject(json, of.kind, true, now);
    const { keyId, external = "" } = given;
    const subject = { name: external, ...given, ...(keyId !== undefined && { source: sourceOfKey(keyId) }) };
    const body = await oneBody(store, of, await store.subjects.create(of.kind, { ...subject, createdAt: now }, by));
    log.info(`${of.noun} created`, { ...actor, [`${of.kind}Id`]: body.id, name: body.name });
    return status(201, body);
  };

const updateOne =
  <Body extends { id: number; name: string }>(of: Kind<Body>) =>
  ({ store, log, clock, endRunning }: AdminDeps) =>
  async ({ json, params, actor, by }: JsonContext & IdContext): Promise<Body> => {
    const change = parseSubject(json, of.kind, false, clock());
    const body = await oneBody(
      store,
      of,
      await store.subjects.update(of.kind, parseId(params.id, of.noun), change, by),
    );
    if (change.isActive === false) await endRunning(subjectOf(body.id), clock());
    const fields = { ...actor, [`${of.kind}Id`]: body.id, name: body.name };
    log.info(`${of.noun} changed`, { ...fields, changed: Object.keys(change).join(" ") });
    return body;
  };

const deleteOne =
  ({ kind, noun }: Pick<Kind<unknown>, "kind" | "noun">) =>
  ({ store, log }: AdminDeps) =>
  async ({ params, query, actor, by }: ChangeContext & IdContext & { query: ForgetQuery }): Promise<schema.OkBody> => {
    const id = parseId(params.id, noun);
    const name = await store.subjects.delete(kind, id, query.forget === "true", by);
    if (name === undefined) throw new ApiError(404, `${noun} not found`);
    log.info(`${noun} deleted`, { ...actor, [`${kind}Id`]: id, name });
    return { ok: true };
  };

export const [getTeam, getUser] = [getOne(teams), getOne(users)];
export const [createTeam, createUser] = [createOne(teams), createOne(users)];
export const [updateTeam, updateUser] = [updateOne(teams), updateOne(users)];
export const [deleteTeam, deleteUser] = [deleteOne(teams), deleteOne(users)];
