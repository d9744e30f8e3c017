import type { AdminDeps } from "../http/deps.ts";
import { noBackendCounts } from "../../domain/backends.ts";
import { Histogram } from "../../domain/histogram.ts";
import type { RequestFieldValues } from "../../domain/request-fields.ts";
import type { StoredBackend } from "../../store/traffic/contract.ts";
import { mergeRows } from "../../store/traffic/latencies.ts";
import { minuteOf, minutesPerDay, minutesPerHour, msPerMinute, timestampOf } from "../../time/seoul.ts";
import { bodyParser, csrfField } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import * as schema from "../http/schemas.ts";
import type { JsonContext } from "../session/auth.ts";
import { type Static, Type as t } from "@sinclair/typebox";

const milliseconds = t.Number({ minimum: 0 });
const figure = (description: string) => schema.nullable(t.Number({ minimum: 0, description }));
const fraction = (description: string) => schema.nullable(t.Number({ minimum: 0, maximum: 1, description }));

const backendBody = t.Object({
  name: t.String(),
  url: t.String(),
  models: t.Array(t.String(), { description: "Those of MODELS_FILE that it serves, then those found by discover" }),
  state: schema.backendState,
  since: schema.timestamp,
  failing_since: schema.nullable({
    ...schema.timestamp,
    description: "Since when the only backend, which is in all the same, is known not to respond",
  }),
  taken_out_by: schema.nullable(t.String({ description: "Who took it out; null: nobody" })),
  in_flight: schema.count,
  waiting: schema.described("Requests that wait for a place and may use it"),
  max_concurrency: schema.nullable(schema.count),
  spill: t.Boolean({ description: "It is used only while the others of a model are full or out" }),
  requests_1h: schema.described("Requests of the last 60 minutes that ended, as the other figures"),
  errors_1h: schema.described("Those that failed because of it, or with a status of 500 or above"),
  first_byte_p50_ms: schema.nullable(milliseconds),
  first_byte_p95_ms: schema.nullable(milliseconds),
  first_byte_points_ms: t.Array(schema.nullable(milliseconds), { description: "Its medians by three minutes" }),
  prefill_tokens_per_second: figure(
    "Until the first byte of streams of which a thousand tokens did not come from the cache",
  ),
  output_tokens_per_second: figure("Of one stream after its first byte, on average"),
  cached_share: fraction("Of the input, what came from its cache"),
  cached_share_day_before: fraction("The same a day before"),
  expected_cached_share: fraction(
    "Of the input, what was expected to come from its cache; null if that is nothing, as where there was no choice",
  ),
  regret_share: fraction(
    "Of the input, what it read although another backend would have had less to do; null if nothing came from its cache, as it may not report that",
  ),
});

const backendsBody = t.Object({
  file_hash: schema.nullable(
    t.String({ description: "SHA-256 of MODELS_FILE, as the process that responds uses it; null without one" }),
  ),
  instances: t.Array(t.Object({ name: t.String(), file_hash: t.String() }), {
    description: "Every process on this database that uses a file, as host/process",
  }),
  backends: t.Array(backendBody, { description: "In the order of the file" }),
});
type BackendsBody = Static<typeof backendsBody>;

const backendRequest = t.Object({
  draining: t.Boolean({ error: () => "draining must be true or false" }),
  _csrf: csrfField,
});

export const backendsContract = schema.responds(
  "Backends: their state, and what they did in the last hour",
  backendsBody,
);
export const backendContract = schema.takesBody(
  "Have a backend get no new requests, or get them again; in all processes and instances, within seconds",
  backendRequest,
  { 200: schema.okBody },
  404,
);

export const listBackends =
  ({ store, clock, catalog, discoveredModels, backendStates, watch }: AdminDeps) =>
  async (): Promise<BackendsBody> => {
    const { backends, models: listed, file } = catalog();
    const models = [...listed, ...discoveredModels()];
    const now = clock();
    const minute = minuteOf(now) + 1;
    const dayBefore = minute - minutesPerDay;
    const [statuses, figures, before, { requests }, draining, instances, { states }] = await Promise.all([
      backendStates(),
      store.traffic.backends(minute - minutesPerHour, minute, pointMinutes),
      store.traffic.backends(dayBefore - minutesPerHour, dayBefore),
      store.requests.list({ since: now - minutesPerHour * msPerMinute }, newestRequests),
      store.backends.listDraining(),
      store.backends.listFiles(),
      watch.ready(),
    ]);
    const failingSince = backends.length === 1 ? states.find(({ kind }) => kind === "backend_out")?.since : undefined;
    return {
      file_hash: file?.hash ?? null,
      instances: instances.map(({ name, fileHash }) => ({ name, file_hash: fileHash })),
      backends: backends.map(({ name, url, maxConcurrency = null, spill }) => {
        const isIts = ({ backend }: { backend: string | null }): boolean => backend === name;
        // A process that started later does not know from its own states since when it drains.
        const drain = draining.find(isIts);
        // A changed file may just have added it.
        const status = statuses.find((one) => one.name === name) ?? {
          state: "in",
          since: now,
          inFlight: 0,
          waiting: 0,
        };
        const body = {
          name,
          url: withoutSecrets(url),
          models: models.filter((model) => model.backends.includes(name)).map((model) => model.name),
          state: status.state,
          since: timestampOf(drain?.since ?? status.since),
          failing_since: failingSince === undefined ? null : timestampOf(failingSince),
          taken_out_by: drain?.username ?? null,
          in_flight: status.inFlight,
          waiting: status.waiting,
          max_concurrency: maxConcurrency,
          spill,
          cached_share_day_before: cachedShare(before.find(isIts)),
          prefill_tokens_per_second: prefillSpeed(requests.filter(isIts)),
        };
        return Object.assign(body, figuresOf(minute - minutesPerHour, figures.filter(isIts)));
      }),
    };
  };

/** Neither a password nor a query, whatever was accepted. */
function withoutSecrets(given: string): string {
  const url = URL.parse(given);
  if (url === null || !url.protocol.startsWith("http")) return given;
  return url.origin + url.pathname.replace(/\/+$/, "");
}

const [pointMinutes, newestRequests, leastPrefill] = [3, 500, 1000];

/** The one figure by which `max_prefill_tokens` is chosen: of a short prompt, the first byte waits for other things. */
function prefillSpeed(requests: readonly RequestFieldValues[]): number | null {
  let [tokens, ms] = [0, 0];
  for (const request of requests) {
    const { streamed, firstByteMs, queueMs } = request;
    const [input, cached] = [request.inputTokens ?? 0, request.cachedInputTokens ?? 0];
    // Some backends report what was cached beside the input, which is then all that they had to read.
    const read = cached > input ? input : input - cached;
    if (!streamed || firstByteMs === null || read < leastPrefill) continue;
    tokens += read;
    ms += firstByteMs - (queueMs ?? 0);
  }
  return ms <= 0 ? null : (tokens / ms) * 1000;
}

const shareOf = (tokens: number, all: number): number | null => (all === 0 ? null : Math.min(1, tokens / all));
const cachedShare = (sum?: StoredBackend): number | null => shareOf(sum?.cachedTokens ?? 0, sum?.inputTokens ?? 0);

function firstByteOf(sum: StoredBackend | undefined, share: number): number | null {
  const histogram = new Histogram(sum?.firstByte);
  return histogram.count === 0 ? null : (histogram.quantiles([share])[0] ?? null);
}

/** @param points sums of a backend, by `pointMinutes` since a minute */
function figuresOf(since: number, points: readonly StoredBackend[]) {
  const sum = points.slice(1).reduce((all, one) => mergeRows(one, all, ["minute", "backend"]), points[0]);
  const { inputTokens, cachedTokens, expectedTokens, regretTokens, streamedTokens, streamedUs } =
    sum ?? noBackendCounts;
  return {
    requests_1h: sum?.requestCount ?? 0,
    errors_1h: sum?.errorCount ?? 0,
    first_byte_p50_ms: firstByteOf(sum, 0.5),
    first_byte_p95_ms: firstByteOf(sum, 0.95),
    first_byte_points_ms: Array.from({ length: minutesPerHour / pointMinutes }, (_, at) =>
      firstByteOf(
        points.find(({ minute }) => minute === since + at * pointMinutes),
        0.5,
      ),
    ),
    output_tokens_per_second: streamedUs === 0 ? null : (streamedTokens / streamedUs) * 1_000_000,
    cached_share: cachedShare(sum),
    // So it is where there was no choice.
    expected_cached_share: expectedTokens === 0 ? null : shareOf(expectedTokens, inputTokens),
    // What a backend does not report may well be cached.
    regret_share: cachedTokens === 0 ? null : shareOf(regretTokens, inputTokens),
  };
}

const parseBackendRequest = bodyParser(backendRequest);

export const updateBackend =
  ({ catalog, setDraining, log }: AdminDeps) =>
  async ({ params: { name }, json, actor, by }: JsonContext & { params: { name: string } }): Promise<schema.OkBody> => {
    const { draining } = parseBackendRequest(json);
    if (!catalog().backends.some((backend) => backend.name === name)) throw new ApiError(404, "Backend not found");
    await setDraining(name, draining, by);
    log.info(draining ? "Backend drains: it gets no new requests" : "Backend gets requests again", {
      ...actor,
      backend: name,
    });
    return { ok: true };
  };
