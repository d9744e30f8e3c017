import { type Static, Type as t } from "@sinclair/typebox";
import { roles } from "../../domain/changes.ts";
import type { auditFilters } from "../../store/accounts/contract.ts";
import * as schema from "../http/schemas.ts";
import { checkedBy, csrfField, instant, text } from "../http/body-schema.ts";

const string = (field: string) => t.String({ error: () => `${field} must be a string` });
export const loginRequest = t.Object({ username: string("username"), password: string("password") });
const loginBody = t.Object({ ok: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type LoginBody = Static<typeof loginBody>;
const loginOffer = t.Object({
  provider: schema.nullable(
    t.Object({
      name: t.String(),
      url: t.String(),
      is_only: t.Boolean({ description: "The password is the exception" }),
    }),
  ),
});
export type LoginOffer = Static<typeof loginOffer>;
const meBody = t.Object({ authenticated: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type MeBody = Static<typeof meBody>;
const anonymousBody = t.Object({ authenticated: t.Literal(false) });
export type AnonymousBody = Static<typeof anonymousBody>;

/** Counted in code points. */
const passwordLength = { minLength: 8, maxLength: 512 };
/** @param name what the sentence calls it */
export function findPasswordProblem(value: unknown, name = "new_password"): string | undefined {
  if (typeof value !== "string") return `${name} must be a string`;
  const { minLength, maxLength } = passwordLength;
  const length = Array.from(value).length;
  if (length >= minLength && length <= maxLength) return undefined;
  return `${name} must have from ${minLength} to ${maxLength} characters`;
}
export const passwordRequest = t.Object({
  current_password: string("current_password"),
  new_password: checkedBy((value) => findPasswordProblem(value), t.String(passwordLength)),
  _csrf: csrfField,
});

const sessionsBody = t.Array(
  t.Object({
    id: t.String(),
    is_current: t.Boolean(),
    username: t.String(),
    role: schema.oneOf(roles),
    user_id: schema.nullable(t.Integer({ description: "Who signed in at a provider; null: the administrator" })),
    created_at: schema.nullable(schema.timestamp),
    last_seen_at: schema.nullable(schema.timestamp),
    expires_at: schema.timestamp,
    address: schema.nullable(t.String()),
    client: schema.nullable(t.String({ description: "User-Agent at the login" })),
  }),
);
export type SessionsBody = Static<typeof sessionsBody>;
const endedBody = t.Object({ ok: t.Literal(true), ended: schema.count });
export type EndedBody = Static<typeof endedBody>;

/** A program is nobody's: none is a member. */
const tokenRoles = roles.filter((one) => one !== "member");
const role = schema.oneOf(tokenRoles, {
  description: "`viewer` reads all but secrets; `admin` also changes all but tokens, sessions and the password",
  error: () => `role must be one of ${tokenRoles.join(", ")}`,
});
export const tokenRequest = t.Object({
  name: text("name", { maxLength: 120 }),
  role,
  expires_at: t.Optional(schema.nullable(instant("expires_at", "By default in 90 days; null: never"))),
  _csrf: csrfField,
});
export const tokenBody = t.Object({
  id: t.Integer(),
  head: t.String({ description: "Its first characters" }),
  name: t.String(),
  role,
  created_at: schema.timestamp,
  expires_at: schema.nullable(schema.timestamp),
  last_used_at: schema.nullable(schema.timestamp),
});
export const newTokenBody = t.Object({ ...tokenBody.properties, token: t.String() });

export const logIn = {
  ...schema.takesBody("Start a session", loginRequest, { 200: loginBody }),
  response: { 200: loginBody, ...schema.errors(400, 401, 408, 413, 415, 429) },
};

export const getLogin = {
  response: { 200: loginOffer, ...schema.errors() },
  detail: { summary: "Who signs people in beside the password: a provider of OpenID Connect, or none" },
};

export const getMe = {
  response: { 200: meBody, 401: anonymousBody, ...schema.errors() },
  detail: { summary: "The current session" },
};

export const logOut = schema.responds("End the session", schema.okBody);
export const changePassword = schema.takesBody(
  "Change your password, and end all other sessions",
  passwordRequest,
  { 200: schema.okBody },
  409,
  429,
);
const filter = (name: (typeof auditFilters)[number]) =>
  t.Optional(t.String({ maxLength: 600, error: `${name} must be at most 600 characters`, description: "Exact" }));
const auditQuery = t.Object({
  actor: filter("actor"),
  action: filter("action"),
  target: filter("target"),
  cursor: t.Optional(t.String({ pattern: "^[1-9]\\d{0,14}$", error: schema.cursorMessage })),
  format: schema.choice("format", ["json", "csv"], "json"),
});
export type AuditQuery = Static<typeof auditQuery>;
const state = schema.nullable(
  t.String({ description: "JSON of the members that changed, cut off after 4 KiB; no secrets" }),
);
export const auditRow = t.Object({
  id: t.Integer(),
  at: schema.timestamp,
  actor: t.String(),
  role: schema.nullable(t.String()),
  address: schema.nullable(t.String()),
  action: t.String(),
  target: t.String({ description: "Such as `key/12`" }),
  before: state,
  after: state,
  request_id: schema.nullable(t.String()),
  change_id: schema.nullable(t.String({ description: "X-Change-Id: of several that one action of a user makes" })),
  count: t.Integer({ description: "Of refused logins, which are one row by address and hour" }),
});
export const auditBody = t.Object({ rows: t.Array(auditRow), next_cursor: schema.nextCursor });

export const listAudit = schema.takesQuery("Who changed what, latest first; as CSV all rows", auditQuery, auditBody);
export const listTokens = schema.responds(
  "The tokens of programs; those that have expired stay for a month",
  t.Array(tokenBody),
);
export const createToken = schema.takesBody(
  "Create a token for a program; only this response shows it",
  schema.strict(tokenRequest),
  { 201: newTokenBody },
);
export const deleteToken = schema.responds("Delete a token: its next request is refused", schema.okBody, 404);
export const listSessions = schema.responds("The sessions of the console; of who is no admin, their own", sessionsBody);
export const endSession = schema.responds("End a session", schema.okBody, 404);
export const endOtherSessions = schema.responds("End all sessions but the current one", endedBody);
