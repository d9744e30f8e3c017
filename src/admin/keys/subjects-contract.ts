import { type Static, Type as t } from "@sinclair/typebox";
import * as schema from "../http/schemas.ts";
import { csrfField, text, idField } from "../http/body-schema.ts";
import { keyBody, keyFields, keyName, limits, isActive } from "./contract.ts";

const { note, tags, team_id, limits_extra, notify } = keyFields;
const teamFields = t.Partial(t.Object({ note, tags, ...limits, limits_extra, notify })).properties;
export const newTeamRequest = t.Object({ name: keyName, ...teamFields, _csrf: csrfField });
export const teamChangeRequest = t.Object(
  { name: t.Optional(keyName), ...teamFields, _csrf: csrfField },
  { anyOf: ["name", ...Object.keys(teamFields)].map((name) => ({ required: [name] })) },
);

const userFields = t.Partial(
  t.Object({
    name: keyName,
    is_active: isActive,
    note,
    tags,
    team_id,
    ...limits,
    limits_extra,
    notify,
  }),
).properties;
export const newUserRequest = t.Object({
  key_id: t.Optional(idField("key_id", "key", "Whose user it is; or source")),
  source: t.Optional(
    t.String({
      pattern: "^open-webui@[\\w.-]{1,64}$",
      description: "As keys give it in users_from",
      error: () => "source must be such as open-webui@NAME",
    }),
  ),
  external: text("external", { maxLength: 256, description: "Its id at the front end" }),
  ...userFields,
  _csrf: csrfField,
});
const changedUserFields = {
  ...userFields,
  same_as: t.Optional(
    schema.nullable(idField("same_as", "user", "From now on its counts and limits are those of that one")),
  ),
  team_by_provider: t.Optional(
    t.Literal(true, {
      description: "Each sign-in sets the team, until team_id is set",
      error: () => "team_by_provider must be true; set team_id to end it",
    }),
  ),
};
export const userChangeRequest = t.Object(
  { ...changedUserFields, _csrf: csrfField },
  { anyOf: Object.keys(changedUserFields).map((name) => ({ required: [name] })) },
);

const { used, limit_states, refused_today } = keyBody.properties;
const subjectBody = {
  id: t.Integer(),
  name: t.String(),
  ...limits,
  limits_extra,
  notify: keyBody.properties.notify,
  used,
  limit_states,
  refused_today,
  note: schema.nullable(t.String()),
  tags: t.Array(t.String()),
};
const teamBody = t.Object({ ...subjectBody, created_at: schema.timestamp, key_count: schema.count });
export type TeamBody = Static<typeof teamBody>;
const userBody = t.Object({
  ...subjectBody,
  source: t.String({ description: "key:ID, a name that keys give in users_from, or an issuer of OpenID Connect" }),
  external: t.String({ description: "Empty: all users that are too many for the key" }),
  key_id: schema.nullable(t.Integer({ description: "With which it was first seen" })),
  team_id: schema.nullable(t.Integer()),
  same_as: schema.nullable(t.Integer()),
  team_by_provider: t.Boolean({ description: "Each sign-in sets the team" }),
  signed_in_at: schema.nullable(schema.timestamp),
  is_active: t.Boolean(),
  first_seen_at: schema.timestamp,
  last_seen_at: schema.nullable(schema.timestamp),
});
export type UserBody = Static<typeof userBody>;

const teamsBody = t.Object({ teams: t.Array(teamBody, { description: "By id" }) });
export type TeamsBody = Static<typeof teamsBody>;
const usersBody = t.Object({ users: t.Array(userBody, { description: "By id" }), next_cursor: schema.nextCursor });
export type UsersBody = Static<typeof usersBody>;

const usersQuery = t.Object({
  key: schema.idParameter("key"),
  team: schema.idParameter("team"),
  q: schema.textParameter("q", 1000, "Only users whose name or external id contains it, in any case"),
  ...schema.pageParameters({ maximum: 1000, default: 200 }, "^\\d{1,15}$"),
});
export type UsersQuery = Static<typeof usersQuery>;
const forgetQuery = t.Object({
  forget: schema.flagParameter("forget", "Nothing that it was called is kept"),
});
export type ForgetQuery = Static<typeof forgetQuery>;

export const listTeams = schema.responds("All teams: keys whose limits hold for them together", teamsBody);
export const listUsers = schema.takesQuery("Users behind keys, whom a front end names", usersQuery, usersBody);
export const getTeam = schema.responds("A team", teamBody, 404);
export const getUser = schema.responds("A user", userBody, 404);

export const createTeam = schema.takesBody(
  "Create a team; keys join it by their team_id",
  schema.strict(newTeamRequest),
  { 201: teamBody },
  409,
);
export const createUser = schema.takesBody(
  "Create a user before its first request",
  schema.strict(newUserRequest),
  { 201: userBody },
  409,
);
export const updateTeam = schema.takesBody(
  "Change a team: its name, limits and notes",
  schema.strict(teamChangeRequest),
  { 200: teamBody },
  404,
  409,
);
export const updateUser = schema.takesBody(
  "Change a user: its name, team, state, limits and notes; with is_active false, its running responses end",
  schema.strict(userChangeRequest),
  { 200: userBody },
  404,
  409,
);
export const deleteTeam = schema.takesQuery(
  "Delete a team; its keys stay, without a team, and its usage is kept",
  forgetQuery,
  schema.okBody,
  404,
);
export const deleteUser = schema.takesQuery("Delete a user; its usage is kept", forgetQuery, schema.okBody, 404);
