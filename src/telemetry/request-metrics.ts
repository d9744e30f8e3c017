import { Counter, Histogram, type Registry } from "prom-client";
import { withoutControls } from "../log/log.ts";
import { createCounter } from "./series.ts";
import { lacksUsage, refusals, type RequestObserver, type RequestRecord } from "../domain/requests.ts";
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
  return (key) => {
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const created = create(key);
    cache.set(key, created);
    return created;
  };
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
  if (perKey) observers.push(createKeyCounter(registry));
  return {
    finished(record) {
      for (const observe of observers) observe(record);
      if (record.outcome === "completed") return;
      for (const observe of ofFailures) observe(record);
    },
  };
}

function createRequestCounter(registry: Registry): Observe {
  const requests = createCounter(registry, {
    name: "tollgate_requests_total",
    help: "Requests to /v1 that ended, by outcome",
    labelNames: ["method", "endpoint", "outcome", "status"],
  });
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

function createMissingUsageCounter(registry: Registry): Observe {
  const responses = createCounter(registry, {
    name: "tollgate_responses_without_tokens_total",
    help: "Responses that were counted without tokens, although their path reports them",
    labelNames: [],
  })({});
  return (record) => {
    if (lacksUsage(record)) responses.count += 1;
  };
}

function createDurationHistograms(registry: Registry): Observe {
  const labelNames = ["endpoint", "streamed"] as const;
  const durations = new Histogram({
    name: "tollgate_request_duration_seconds",
    help: "Time from the arrival of a request to the end of its response, in seconds; without refused requests",
    labelNames,
    buckets: requestBuckets,
    registers: [registry],
  });
  const firstBytes = new Histogram({
    name: "tollgate_time_to_first_byte_seconds",
    help: "Time from the arrival of a request to the first byte of its response body, in seconds",
    labelNames,
    buckets: requestBuckets,
    registers: [registry],
  });
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
  const tokens = createCounter(registry, {
    name: "tollgate_tokens_total",
    help: "Tokens reported by the backend, also in responses that do not count",
    labelNames: ["direction"],
  });
  const estimated = createCounter(registry, {
    name: "tollgate_estimated_tokens_total",
    help: "Tokens charged to limits of API keys by an estimate, because the backend reported none",
    labelNames: [],
  })({});
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
  const requests = createCounter(registry, {
    name: "tollgate_model_requests_total",
    help: `Requests to /v1 that ended, by model as MODELS_FILE names it, or as sent; at most ${maxModels}, further ones as other`,
    labelNames: ["model"],
  });
  const tokens = createCounter(registry, {
    name: "tollgate_model_tokens_total",
    help: `Tokens reported by the backend, by model as MODELS_FILE names it, or as sent; at most ${maxModels}, further ones as other`,
    labelNames: ["model", "direction"],
  });
  const known = new Set<string>();
  const series = memoize((name: string) => {
    const model = withoutControls(name);
    return {
      requests: requests({ model }),
      input: tokens({ model, direction: "input" }),
      output: tokens({ model, direction: "output" }),
    };
  });
  return ({ model, status, usage }) => {
    if (model === undefined) return;
    // Clients choose the names, so one that the backend does not know gets no series.
    const isServed = status < 300 && model.length <= maxModelLength;
    if (isServed && known.size < maxModels) known.add(model);
    const { requests: requestCount, input, output } = series(knownOrOther(known, model));
    requestCount.count += 1;
    input.count += usage?.inputTokens ?? 0;
    output.count += usage?.outputTokens ?? 0;
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
  const counter = createCounter(registry, {
    name: "tollgate_limit_refusals_total",
    help: "Requests that a limit of their API key refused, by limit",
    labelNames: ["limit"],
  });
  const series = memoize((limit: string) => counter({ limit }));
  return ({ outcome, code }) => {
    if (outcome === "limited" && code !== undefined) series(code).count += 1;
  };
}

/** What is in the database: unlike the counters of requests that ended, it leaves out what does not count. */
export function createCountedCounter(registry: Registry, perKey: boolean): (counted: KeyUsage) => void {
  const keyLabel = perKey ? (["key_id"] as const) : [];
  const requests = createCounter<string>(registry, {
    name: "tollgate_counted_requests_total",
    help: "Requests added to the counts in the database",
    labelNames: keyLabel,
  });
  const tokens = createCounter<string>(registry, {
    name: "tollgate_counted_tokens_total",
    help: "Tokens added to the counts in the database",
    labelNames: [...keyLabel, "direction"],
  });
  const seriesOf = (labels: Record<string, string>) => ({
    requests: requests(labels),
    input: tokens({ ...labels, direction: "input" }),
    output: tokens({ ...labels, direction: "output" }),
  });
  const all = perKey ? undefined : seriesOf({});
  const ofKey = memoize((keyId: number) => seriesOf({ key_id: String(keyId) }));
  return ({ keyId, requestCount, inputTokens, outputTokens }) => {
    const series = all ?? ofKey(keyId);
    series.requests.count += requestCount;
    series.input.count += inputTokens;
    series.output.count += outputTokens;
  };
}

function createKeyCounter(registry: Registry): Observe {
  const requests = createCounter(registry, {
    name: "tollgate_key_requests_total",
    help: "Requests to /v1 that ended, by API key",
    labelNames: ["key_id"],
  });
  const tokens = createCounter(registry, {
    name: "tollgate_key_tokens_total",
    help: "Tokens reported by the backend, by API key",
    labelNames: ["key_id", "direction"],
  });
  const series = memoize((id: number) => ({
    requests: requests({ key_id: String(id) }),
    input: tokens({ key_id: String(id), direction: "input" }),
    output: tokens({ key_id: String(id), direction: "output" }),
  }));
  return ({ keyId, usage }) => {
    if (keyId === undefined) return;
    const { requests: requestCount, input, output } = series(keyId);
    requestCount.count += 1;
    input.count += usage?.inputTokens ?? 0;
    output.count += usage?.outputTokens ?? 0;
  };
}
