import { type Static, Type as t } from "@sinclair/typebox";
import { count, csrfField, describes, nullable, timestamp } from "../http/schemas.ts";

export const settingsBody = t.Object({
  settings: t.Array(
    t.Object({
      name: t.String(),
      value: nullable(t.String({ description: "Null if it is unset, or a secret" })),
      is_set: t.Boolean(),
      is_secret: t.Boolean(),
      origin: t.Union([t.Literal("environment"), t.Literal(".env"), t.Literal("default")]),
      allowed: t.String(),
    }),
  ),
  versions: t.Object({ tollgate: t.String(), commit: t.String(), bun: t.String(), database: t.String() }),
  database: t.Object({
    kind: t.Union([t.Literal("sqlite"), t.Literal("postgresql")]),
    size_bytes: count,
    tables: t.Array(
      t.Object({ name: t.String(), rows: count, is_exact: t.Boolean({ description: "False: there are more rows" }) }),
    ),
  }),
  retention: t.Array(t.Object({ data: t.String(), keeps: t.String() })),
  password_from_environment: t.Boolean(),
});
export type SettingsBody = Static<typeof settingsBody>;

export const passwordRequest = describes(
  t.Object({
    current_password: t.String(),
    new_password: t.String({ minLength: 8, maxLength: 512 }),
    _csrf: csrfField,
  }),
);

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
