import { type Static, Type as t } from "@sinclair/typebox";
import { byHandler, count, errors, nullable, okBody, timestamp } from "../http/schemas.ts";
import { csrfField, describes } from "../http/body-schema.ts";
import { keyBody, keyFields, keyName, limits } from "./contract.ts";

const { note, tags, limits_extra } = keyFields;
const fields = t.Partial(t.Object({ note, tags, ...limits, limits_extra })).properties;
export const newTeamRequest = t.Object({ name: keyName, ...fields, _csrf: csrfField });
export const teamChangeRequest = t.Object(
  { name: t.Optional(keyName), ...fields, _csrf: csrfField },
  { anyOf: ["name", ...Object.keys(fields)].map((name) => ({ required: [name] })) },
);

const { used, limit_states, refused_today } = keyBody.properties;
export const teamBody = t.Object({
  id: t.Integer(),
  name: t.String(),
  created_at: timestamp,
  key_count: count,
  ...limits,
  limits_extra,
  used,
  limit_states,
  refused_today,
  note: nullable(t.String()),
  tags: t.Array(t.String()),
});
export type TeamBody = Static<typeof teamBody>;

const teamsBody = t.Object({ teams: t.Array(teamBody, { description: "By id" }) });
export type TeamsBody = Static<typeof teamsBody>;

export const listTeams = {
  response: { 200: teamsBody, ...errors(401) },
  detail: { summary: "All teams: keys whose limits hold for them together" },
};

export const getTeam = {
  response: { 200: teamBody, ...errors(401, 404) },
  detail: { summary: "A team" },
};

export const createTeam = {
  parse: byHandler,
  body: describes({ ...newTeamRequest, additionalProperties: false }),
  response: { 201: teamBody, ...errors(400, 401, 403, 408, 409, 413, 415) },
  detail: { summary: "Create a team; keys join it by their team_id" },
};

export const updateTeam = {
  parse: byHandler,
  body: describes({ ...teamChangeRequest, additionalProperties: false }),
  response: { 200: teamBody, ...errors(400, 401, 403, 404, 408, 409, 413, 415) },
  detail: { summary: "Change a team: its name, limits and notes" },
};

export const deleteTeam = {
  response: { 200: okBody, ...errors(401, 403, 404) },
  detail: { summary: "Delete a team; its keys stay, without a team, and its usage is kept" },
};
