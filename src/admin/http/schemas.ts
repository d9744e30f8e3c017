import {
  Kind,
  type Static,
  type TInteger,
  type TNull,
  type TSchema,
  type TUnion,
  type TUnsafe,
  Type as t,
} from "@sinclair/typebox";

/**
 * A request body's shape, for the types and the OpenAPI document only. The handler validates the body itself, because
 * the specification fixes the order and the wording of the errors, counts code points, and skips single GPU entries.
 */
export const describes = <S extends TSchema>(schema: S): TUnsafe<Static<S>> =>
  t.Unsafe<Static<S>>({ ...schema, [Kind]: "Any" });

export const nullable = <S extends TSchema>(schema: S): TUnion<[S, TNull]> => t.Union([schema, t.Null()]);
export const timestamp = t.String({ format: "date-time", description: "ISO 8601 with the offset of Asia/Seoul" });
export const count = t.Integer({ minimum: 0 });
/** At least one character other than white space, and no null character. */
export const notBlank = "^[^\\u0000]*[^\\u0000\\s][^\\u0000]*$";
export const csrfField = t.Optional(t.String({ description: "Alternative to the header X-CSRF-Token" }));

/** Optional for clients, always present for handlers: Elysia fills in the default. */
export const integerParameter = (
  name: string,
  range: { minimum: number; maximum: number; default: number },
): TInteger =>
  t.Optional(
    t.Integer({ ...range, error: `${name} must be an integer from ${range.minimum} to ${range.maximum}` }),
  ) as TInteger;

export const errorBody = t.Object({ error: t.String() });
export const okBody = t.Object({ ok: t.Literal(true) });
export type OkBody = Static<typeof okBody>;

export const loginRequest = describes(t.Object({ username: t.String(), password: t.String() }));
export const loginBody = t.Object({ ok: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type LoginBody = Static<typeof loginBody>;
export const meBody = t.Object({ authenticated: t.Literal(true), username: t.String(), csrf_token: t.String() });
export type MeBody = Static<typeof meBody>;
export const anonymousBody = t.Object({ authenticated: t.Literal(false) });
export type AnonymousBody = Static<typeof anonymousBody>;

export const healthBody = t.Object({ status: t.Literal("ok") });
export type HealthBody = Static<typeof healthBody>;
export const readinessBody = t.Object({
  status: t.Union([t.Literal("ready"), t.Literal("unavailable")]),
  database: t.Union([t.Literal("ok"), t.Literal("not writable")]),
  upstream: t.Union([t.Literal("ok"), t.Literal("not answering")]),
  counts: t.Union([t.Literal("ok"), t.Literal("waiting"), t.Literal("partly refused")], {
    description:
      "Whether the usage of requests is written, waits for the database, or contains numbers that it refuses",
  }),
});
export type ReadinessBody = Static<typeof readinessBody>;
export const metricsText = t.String({ description: "Prometheus text format" });
export const alertsText = t.String({ description: "A rule file in YAML" });
export const dashboard = t.Record(t.String(), t.Unknown(), { description: "A dashboard to import" });
export const scriptText = t.String({ description: "POSIX shell" });
