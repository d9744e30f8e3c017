import { Counter, Histogram, type Registry } from "prom-client";
import { addUsage, createCounter, createUsageCounters } from "./series.ts";
import { refusals, type RequestObserver, type RequestRecord, usagePaths } from "../domain/requests.ts";
import type { KeyUsage } from "../domain/usage.ts";

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

type Observe = (record: RequestRecord) => void;

/** Keeps each series, so that its labels are resolved only once. */
function memoize<K, T>(create: (key: K) => T): (key: K) => T {
  const cache = new Map<K, T>();
  return (key) => cache.getOrInsertComputed(key, create);
}

/** @param options.ofBackends told of each request too */
export function createRequestMetrics(
  registry: Registry,
  { perKey, ofBackends }: { perKey: boolean; ofBackends: readonly Observe[] },
): RequestObserver {
  const observers: Observe[] = [
    createRequestCounter(registry),
    createDurationHistograms(registry),
    createTokenCounter(registry),
    createModelCounter(registry),
    createMissingUsageCounter(registry),
    ...ofBackends,
  ];
  const ofFailures: Observe[] = [createUpstreamErrorCounter(registry), createLimitCounter(registry)];
  if (perKey) {
    observers.push(createSubjectCounter(registry, "key", ({ keyId }) => keyId));
    observers.push(createSubjectCounter(registry, "team", ({ teamId }) => teamId));
  }
  return {
    finished(record) {
      for (const observe of observers) observe(record);
      if (record.outcome === "completed") return;
      for (const observe of ofFailures) observe(record);
    },
  };
}

function createRequestCounter(registry: Registry): Observe {
  const requests = createCounter(registry, "tollgate_requests_total", "Requests to /v1 that ended, by outcome", [
    "method",
    "endpoint",
    "outcome",
    "status",
  ]);
  const series = memoize((endpoint: string) =>
    memoize((method: string) =>
      memoize((outcome: string) => memoize((status: string) => requests({ method, endpoint, outcome, status }))),
    ),
  );
  return ({ method, path, outcome, status }) => {
    const statusClass = statusClasses[Math.floor(status / 100)] ?? "other";
    series(knownOrOther(endpoints, path))(knownOrOther(methods, method))(outcome)(statusClass).count += 1;
  };
}

/** Whether it should have reported tokens and did not: a whole 2xx response to a POST on a path that reports them. */
export const lacksUsage = ({ method, path, status, outcome, usage }: RequestRecord): boolean =>
  usage?.inputTokens === 0 &&
  usage.outputTokens === 0 &&
  outcome === "completed" &&
  status >= 200 &&
  status <= 299 &&
  method === "POST" &&
  usagePaths.has(path);

function createMissingUsageCounter(registry: Registry): Observe {
  const responses = createCounter(
    registry,
    "tollgate_responses_without_tokens_total",
    "Responses that were counted without tokens, although their path reports them",
    [],
  )({});
  return (record) => {
    if (lacksUsage(record)) responses.count += 1;
  };
}

function createDurationHistograms(registry: Registry): Observe {
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
  const seriesOf = (streamed: "true" | "false") =>
    memoize((endpoint: string) => ({
      duration: durations.labels(endpoint, streamed),
      firstByte: firstBytes.labels(endpoint, streamed),
    }));
  const [streams, others] = [seriesOf("true"), seriesOf("false")];
  return (record) => {
    if (refusals.has(record.outcome)) return;
    const { duration, firstByte } = (record.streamed ? streams : others)(knownOrOther(endpoints, record.path));
    duration.observe(record.durationMs / 1000);
    if (record.firstByteMs !== undefined) firstByte.observe(record.firstByteMs / 1000);
  };
}

function createTokenCounter(registry: Registry): Observe {
  const tokens = createCounter(
    registry,
    "tollgate_tokens_total",
    "Tokens reported by the backend, also in responses that do not count",
    ["direction"],
  );
  const estimated = createCounter(
    registry,
    "tollgate_estimated_tokens_total",
    "Tokens charged to limits of API keys by an estimate, because the backend reported none",
    [],
  )({});
  const [input, output] = [tokens({ direction: "input" }), tokens({ direction: "output" })];
  return ({ usage, estimatedTokens }) => {
    if (estimatedTokens !== undefined) estimated.count += estimatedTokens;
    if (usage === undefined) return;
    input.count += usage.inputTokens;
    output.count += usage.outputTokens;
  };
}

/** By the name in the file of models, else by the one that was sent; requests that name none are left out. */
function createModelCounter(registry: Registry): Observe {
  const which = `by model as MODELS_FILE names it, or as sent; at most ${maxModels}, further ones as other`;
  const texts = ["model", `Requests to /v1 that ended, ${which}`, `Tokens reported by the backend, ${which}`] as const;
  const series = createUsageCounters(registry, texts, "model");
  const known = new Set<string>();
  return ({ model, status, usage }) => {
    if (model === undefined) return;
    // Clients choose the names, so one that the backend does not know gets no series.
    const isServed = status < 300 && model.length <= maxModelLength;
    if (isServed && known.size < maxModels) known.add(model);
    addUsage(series(knownOrOther(known, model)), usage);
  };
}

function createUpstreamErrorCounter(registry: Registry): Observe {
  const errors = new Counter({
    name: "tollgate_upstream_errors_total",
    help: "Requests that failed because of the backend, by error code and cause",
    labelNames: ["code", "cause"],
    registers: [registry],
  });
  const codes = new Set<string>();
  return ({ outcome, code = "unknown", cause = "other" }) => {
    if (outcome !== "upstream_failed" && outcome !== "timed_out") return;
    if (codes.size < maxCodes) codes.add(code);
    errors.inc({ code: knownOrOther(codes, code), cause: knownOrOther(causes, cause) });
  };
}

function createLimitCounter(registry: Registry): Observe {
  const counter = createCounter(
    registry,
    "tollgate_limit_refusals_total",
    "Requests that a limit of their API key refused, by limit",
    ["limit"],
  );
  const series = memoize((limit: string) => counter({ limit }));
  return ({ outcome, code }) => {
    if (outcome === "limited" && code !== undefined) series(code).count += 1;
  };
}

/** What is in the database: unlike the counters of requests that ended, it leaves out what does not count. */
export function createCountedCounter(registry: Registry, perKey: boolean): (counted: KeyUsage) => void {
  const texts = ["Requests added to the counts in the database", "Tokens added to the counts in the database"] as const;
  const series = createUsageCounters(registry, ["counted", ...texts], perKey ? "key_id" : undefined);
  return (counted) => addUsage(series(counted.keyId), counted, counted.requestCount);
}

function createSubjectCounter(
  registry: Registry,
  noun: "key" | "team",
  idOf: (record: RequestRecord) => number | undefined,
): Observe {
  const words = { key: "API key", team: "team of the API key" }[noun];
  const texts = [
    noun,
    `Requests to /v1 that ended, by ${words}`,
    `Tokens reported by the backend, by ${words}`,
  ] as const;
  const series = createUsageCounters(registry, texts, `${noun}_id`);
  return (record) => {
    const id = idOf(record);
    if (id !== undefined) addUsage(series(id), record.usage);
  };
}
