import { type Static, Type as t } from "@sinclair/typebox";
import { count, nullable, timestamp } from "../http/schemas.ts";
import { usageTotal } from "../usage/contract.ts";

export const overviewBody = t.Object({
  now: timestamp,
  today: usageTotal,
  yesterday: t.Object(usageTotal.properties, { description: "Yesterday up to the same minute of the day" }),
  last_minute: t.Object(usageTotal.properties, { description: "The last whole minute" }),
  active_keys: count,
  in_flight: count,
  separate_ports: t.Boolean({ description: "ADMIN_PORT is set: /v1 is not served at this address" }),
  gpus: t.Array(
    t.Object({
      gpu_id: t.Integer(),
      name: t.String(),
      recorded_at: timestamp,
      power_draw_w: nullable(t.Number()),
      utilization_pct: nullable(t.Integer()),
      stale: t.Boolean({ description: "No sample for 2 minutes; not included in power_draw_w" }),
    }),
  ),
  power_draw_w: nullable(t.Number({ description: "Sum over the GPUs that report; null if none does" })),
  upstream: t.Object({
    ok: t.Boolean(),
    checked_at: timestamp,
    url: t.String({ description: "PROXY_UPSTREAM_URL" }),
    failing_since: nullable(timestamp),
    cause: nullable(
      t.String({
        description: "Why it is not ok: a code of the system or of TLS, `status_503`, `timeout` or `not_http`",
      }),
    ),
  }),
});
export type OverviewBody = Static<typeof overviewBody>;
