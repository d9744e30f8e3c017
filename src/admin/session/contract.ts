import { type Static, Type as t } from "@sinclair/typebox";
import { count, nullable, timestamp, open, byHandler, errors, sessionAndCsrf, okBody } from "../http/schemas.ts";
import { checkedBy, csrfField, describes } from "../http/body-schema.ts";

const string = (field: string) => t.String({ error: () => `${field} must be a string` });
export const loginRequest = t.Object({ username: string("username"), password: string("password") });
export const loginBody = t.Object({ ok: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type LoginBody = Static<typeof loginBody>;
export const meBody = t.Object({ authenticated: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type MeBody = Static<typeof meBody>;
export const anonymousBody = t.Object({ authenticated: t.Literal(false) });
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

export const sessionsBody = t.Array(
  t.Object({
    id: t.String(),
    is_current: t.Boolean(),
    username: t.String(),
    created_at: nullable(timestamp),
    last_seen_at: timestamp,
    expires_at: timestamp,
    address: nullable(t.String()),
    client: nullable(t.String({ description: "User-Agent at the login" })),
  }),
);
export type SessionsBody = Static<typeof sessionsBody>;
export const endedBody = t.Object({ ok: t.Literal(true), ended: count });
export type EndedBody = Static<typeof endedBody>;

export const logIn = {
  parse: byHandler,
  body: describes(loginRequest),
  response: { 200: loginBody, ...errors(400, 401, 408, 413, 415, 429) },
  detail: { summary: "Start a session", ...open },
};

export const getMe = {
  response: { 200: meBody, 401: anonymousBody, ...errors() },
  detail: { summary: "The current session", ...open },
};

export const logOut = {
  response: { 200: okBody, ...errors(401, 403) },
  detail: { summary: "End the session", ...sessionAndCsrf },
};

export const changePassword = {
  parse: byHandler,
  body: describes(passwordRequest),
  response: { 200: okBody, ...errors(400, 401, 403, 408, 409, 413, 415, 429) },
  detail: { summary: "Change your password, and end all other sessions", ...sessionAndCsrf },
};

export const listSessions = {
  response: { 200: sessionsBody, ...errors(401) },
  detail: { summary: "The sessions of the console" },
};

export const endSession = {
  response: { 200: okBody, ...errors(401, 403, 404) },
  detail: { summary: "End a session", ...sessionAndCsrf },
};

export const endOtherSessions = {
  response: { 200: endedBody, ...errors(401, 403) },
  detail: { summary: "End all sessions but the current one", ...sessionAndCsrf },
};
