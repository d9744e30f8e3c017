import { type Static, Type as t } from "@sinclair/typebox";
import { csrfField } from "../http/body-schema.ts";
import { backendState, count, nullable, okBody, timestamp, responds, takesBody } from "../http/schemas.ts";

const milliseconds = t.Number({ minimum: 0 });

const backendBody = t.Object({
  name: t.String(),
  url: t.String(),
  models: t.Array(t.String(), { description: "Those of MODELS_FILE that it serves, then those found by discover" }),
  state: backendState,
  since: timestamp,
  failing_since: nullable({
    ...timestamp,
    description: "Since when the only backend, which is in all the same, is known not to respond",
  }),
  taken_out_by: nullable(t.String({ description: "Who took it out; null: nobody" })),
  in_flight: count,
  waiting: t.Integer({ minimum: 0, description: "Requests that wait for a place and may use it" }),
  max_concurrency: nullable(count),
  spill: t.Boolean({ description: "It is used only while the others of a model are full or out" }),
  requests_1h: t.Integer({
    minimum: 0,
    description: "Requests of the last 60 minutes that ended, as the other figures",
  }),
  errors_1h: t.Integer({
    minimum: 0,
    description: "Those that failed because of it, or with a status of 500 or above",
  }),
  first_byte_p50_ms: nullable(milliseconds),
  first_byte_p95_ms: nullable(milliseconds),
  output_tokens_per_second: nullable(
    t.Number({ minimum: 0, description: "Of one stream after its first byte, on average" }),
  ),
  cached_share: nullable(t.Number({ minimum: 0, maximum: 1, description: "Of the input, what came from its cache" })),
  expected_cached_share: nullable(
    t.Number({
      minimum: 0,
      maximum: 1,
      description:
        "Of the input, what was expected to come from its cache; null if that is nothing, as where there was no choice",
    }),
  ),
  regret_share: nullable(
    t.Number({
      minimum: 0,
      maximum: 1,
      description:
        "Of the input, what it read although another backend would have had less to do; null if nothing came from its cache, as it may not report that",
    }),
  ),
});
export type BackendBody = Static<typeof backendBody>;

export const backendsBody = t.Object({
  file_hash: nullable(
    t.String({ description: "SHA-256 of MODELS_FILE, as the process that responds uses it; null without one" }),
  ),
  instances: t.Array(t.Object({ name: t.String(), file_hash: t.String() }), {
    description: "Every process on this database that uses a file, as host/process",
  }),
  backends: t.Array(backendBody, { description: "In the order of the file" }),
});
export type BackendsBody = Static<typeof backendsBody>;

export const backendRequest = t.Object({
  draining: t.Boolean({ error: () => "draining must be true or false" }),
  _csrf: csrfField,
});

export const listBackends = responds("Backends: their state, and what they did in the last hour", backendsBody);
export const updateBackend = takesBody(
  "Have a backend get no new requests, or get them again; in all processes and instances, within seconds",
  backendRequest,
  { 200: okBody },
  404,
);
