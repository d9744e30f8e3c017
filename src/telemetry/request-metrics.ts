import { Counter, Histogram, type Registry } from "prom-client";
import { addUsage, createCounter, createUsageCounters } from "./series.ts";
import { lacksUsage, refusals, type RequestObserver, type RequestRecord } from "../domain/requests.ts";

/** Label values come only from these lists, so that a client cannot create series by its paths or methods. */
const methods = new Set(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]);
const endpoints = new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/messages",
  "/v1/messages/count_tokens",
  "/v1/responses",
  "/v1/embeddings",
  "/v1/models",
]);
const statusClasses = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];

const knownOrOther = (known: ReadonlySet<string>, value: string): string => (known.has(value) ? value : "other");

/** Causes with a series of their own. The log names the others too. */
const causes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "ETIMEDOUT",
  "EPROTO",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "not_http",
  "connect_timeout",
  "first_byte_timeout",
  "between_bytes_timeout",
  "reported_error",
  "empty_stream",
]);

/** There are few error codes; the limit bounds the memory should that change. */
const maxCodes = 50;

/** Models with a series of their own. */
const maxModels = 200;
const maxModelLength = 128;

/** Seconds: from a short response to the longest that the default timeouts allow. */
const requestBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200];

/** Keeps each series, so that its labels are resolved only once. */
function memoize<K, T>(create: (key: K) => T): (key: K) => T {
  const cache = new Map<K, T>();
  return (key) => cache.getOrInsertComputed(key, create);
}

/** @param ofBackends told of each request too */
export function createRequestMetrics(
  registry: Registry,
  perKey: boolean,
  ofBackends: ((record: RequestRecord) => void) | undefined,
): RequestObserver {
  const series = createSeries(registry, perKey);
  const models = new Set<string>();
  const codes = new Set<string>();
  return {
    finished(record) {
      const { method, path, outcome, status, usage, estimatedTokens = 0, model, keyId, teamId } = record;
      const { code = "unknown", cause = "other", durationMs, firstByteMs } = record;
      const endpoint = knownOrOther(endpoints, path);
      const statusClass = statusClasses[Math.floor(status / 100)] ?? "other";
      series.requests(endpoint)(knownOrOther(methods, method))(outcome)(statusClass).count += 1;
      if (!refusals.has(outcome)) {
        const { duration, firstByte } = (record.streamed ? series.streams : series.others)(endpoint);
        duration.observe(durationMs / 1000);
        if (firstByteMs !== undefined) firstByte.observe(firstByteMs / 1000);
      }
      series.estimated.count += estimatedTokens;
      series.input.count += usage?.inputTokens ?? 0;
      series.output.count += usage?.outputTokens ?? 0;
      if (model !== undefined) {
        // Clients choose the names, so one that the backend does not know gets no series.
        if (status < 300 && model.length <= maxModelLength && models.size < maxModels) models.add(model);
        addUsage(series.models(knownOrOther(models, model)), usage);
      }
      if (lacksUsage(record)) series.withoutUsage.count += 1;
      if (series.keys !== undefined && keyId !== undefined) addUsage(series.keys(keyId), usage);
      if (series.teams !== undefined && teamId !== undefined) addUsage(series.teams(teamId), usage);
      ofBackends?.(record);
      if (outcome === "limited" && record.code !== undefined) series.limits(code).count += 1;
      if (outcome !== "upstream_failed" && outcome !== "timed_out") return;
      if (codes.size < maxCodes) codes.add(code);
      series.upstreamErrors.inc({ code: knownOrOther(codes, code), cause: knownOrOther(causes, cause) });
    },
  };
}

function createSeries(registry: Registry, perKey: boolean) {
  const requestsHelp = "Requests to /v1 that ended, by outcome";
  const requests = createCounter(registry, "tollgate_requests_total", requestsHelp, [
    "method",
    "endpoint",
    "outcome",
    "status",
  ]);
  const durationsOf = createDurationHistograms(registry);
  const tokensHelp = "Tokens reported by the backend, also in responses that do not count";
  const tokens = createCounter(registry, "tollgate_tokens_total", tokensHelp, ["direction"]);
  const which = `by model as MODELS_FILE names it, or as sent; at most ${maxModels}, further ones as other`;
  const limits = createCounter(
    registry,
    "tollgate_limit_refusals_total",
    "Requests that a limit of their API key refused, by limit",
    ["limit"],
  );
  const usageBy = (noun: "model" | "key" | "team", label: string, words: string) =>
    createUsageCounters(
      registry,
      [noun, `Requests to /v1 that ended, ${words}`, `Tokens reported by the backend, ${words}`],
      label,
    );
  return {
    requests: memoize((endpoint: string) =>
      memoize((method: string) =>
        memoize((outcome: string) => memoize((status: string) => requests({ method, endpoint, outcome, status }))),
      ),
    ),
    streams: durationsOf("true"),
    others: durationsOf("false"),
    input: tokens({ direction: "input" }),
    output: tokens({ direction: "output" }),
    estimated: createCounter(
      registry,
      "tollgate_estimated_tokens_total",
      "Tokens charged to limits of API keys by an estimate, because the backend reported none",
      [],
    )({}),
    /** By the name in the file of models, else by the one that was sent; requests that name none are left out. */
    models: usageBy("model", "model", which),
    withoutUsage: createCounter(
      registry,
      "tollgate_responses_without_tokens_total",
      "Responses that were counted without tokens, although their path reports them",
      [],
    )({}),
    limits: memoize((limit: string) => limits({ limit })),
    upstreamErrors: new Counter({
      name: "tollgate_upstream_errors_total",
      help: "Requests that failed because of the backend, by error code and cause",
      labelNames: ["code", "cause"],
      registers: [registry],
    }),
    keys: perKey ? usageBy("key", "key_id", "by API key") : undefined,
    teams: perKey ? usageBy("team", "team_id", "by team of the API key") : undefined,
  };
}

function createDurationHistograms(registry: Registry) {
  const labelNames = ["endpoint", "streamed"] as const;
  const create = (name: string, help: string) =>
    new Histogram({ name, help, labelNames, buckets: requestBuckets, registers: [registry] });
  const durations = create(
    "tollgate_request_duration_seconds",
    "Time from the arrival of a request to the end of its response, in seconds; without refused requests",
  );
  const firstBytes = create(
    "tollgate_time_to_first_byte_seconds",
    "Time from the arrival of a request to the first byte of its response body, in seconds",
  );
  return (streamed: "true" | "false") =>
    memoize((endpoint: string) => ({
      duration: durations.labels(endpoint, streamed),
      firstByte: firstBytes.labels(endpoint, streamed),
    }));
}
