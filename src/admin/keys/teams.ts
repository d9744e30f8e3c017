import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { Team } from "../../store/keys/contract.ts";
import type { Store } from "../../store/store.ts";
import { timestampOf } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import { ApiError } from "../http/errors.ts";
import type { OkBody } from "../http/schemas.ts";
import { subjectOfTeam } from "../../domain/keys.ts";
import { limitsBody, readLoads } from "./body.ts";
import { parseTeam } from "./fields.ts";
import type { ChangeContext } from "../session/auth.ts";
import { type IdContext, type JsonContext, parseId } from "./keys.ts";
import type { Log } from "../../log/log.ts";
import type { TeamBody, TeamsBody } from "./teams-contract.ts";

export interface TeamDeps {
  store: Pick<Store, "teams" | "limits">;
  log: Log;
  clock: WallClock;
}

export const listTeams =
  ({ store }: TeamDeps) =>
  async (): Promise<TeamsBody> => ({ teams: await bodiesOf(store, await store.teams.list()) });

export const getTeam =
  ({ store }: TeamDeps) =>
  async ({ params }: IdContext): Promise<TeamBody> =>
    bodyOf(store, (await store.teams.list(parseId(params.id, "Team")))[0]);

export const createTeam =
  ({ store, log, clock }: TeamDeps) =>
  async ({ json, actor, by }: JsonContext): Promise<ElysiaCustomStatusResponse<201, TeamBody>> => {
    const now = clock();
    const team = await store.teams.create({ name: "", ...parseTeam(json, true, now), createdAt: now }, by);
    if (team === "collision") throw new ApiError(409, nameIsTaken);
    log.info("Team created", { ...actor, teamId: team.id, name: team.name });
    return status(201, await bodyOf(store, team));
  };

export const updateTeam =
  ({ store, log, clock }: TeamDeps) =>
  async ({ json, params, actor, by }: JsonContext & IdContext): Promise<TeamBody> => {
    const change = parseTeam(json, false, clock());
    const team = await store.teams.update(parseId(params.id, "Team"), change, by);
    if (team === "collision") throw new ApiError(409, nameIsTaken);
    const body = await bodyOf(store, team);
    log.info("Team changed", { ...actor, teamId: body.id, name: body.name, changed: Object.keys(change).join(" ") });
    return body;
  };

export const deleteTeam =
  ({ store, log }: TeamDeps) =>
  async ({ params, actor, by }: ChangeContext & IdContext): Promise<OkBody> => {
    const teamId = parseId(params.id, "Team");
    const name = await store.teams.delete(teamId, by);
    if (name === undefined) throw new ApiError(404, "Team not found");
    log.info("Team deleted", { ...actor, teamId, name });
    return { ok: true };
  };

const nameIsTaken = "A team with this name already exists";

async function bodyOf(store: TeamDeps["store"], team: Team | undefined): Promise<TeamBody> {
  const [body] = team === undefined ? [] : await bodiesOf(store, [team]);
  if (body === undefined) throw new ApiError(404, "Team not found");
  return body;
}

async function bodiesOf({ limits }: TeamDeps["store"], teams: readonly Team[]): Promise<TeamBody[]> {
  const loads = await readLoads(
    limits,
    teams.map((team) => ({ id: subjectOfTeam(team.id), limits: team.limits })),
  );
  return teams.map((team) => {
    const load = loads.get(subjectOfTeam(team.id));
    return {
      id: team.id,
      name: team.name,
      created_at: timestampOf(team.createdAt),
      key_count: team.keyCount,
      ...limitsBody(team.limits, load),
      refused_today: load?.refusedToday ?? 0,
      note: team.note,
      tags: [...team.tags],
    };
  });
}
