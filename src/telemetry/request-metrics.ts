import { Counter, Histogram, type Registry } from "prom-client";
import { createCounter } from "./series.ts";
import { withoutControls } from "../log/log.ts";
import { lacksUsage, refusals, type RequestObserver, type RequestRecord } from "../domain/requests.ts";
import type { KeyUsage, Usage } from "../domain/usage.ts";

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
        series.models(knownOrOther(models, model), usage);
      }
      if (lacksUsage(record)) series.withoutUsage.count += 1;
      if (keyId !== undefined) series.keys?.(keyId, usage);
      if (teamId !== undefined) series.teams?.(teamId, usage);
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

export function createCommitObserver(registry: Registry, perKey: boolean) {
  // What is in the database: unlike the counters of requests that ended, it leaves out what does not count.
  const texts = ["Requests added to the counts in the database", "Tokens added to the counts in the database"] as const;
  const addCounted = createUsageCounters(registry, ["counted", ...texts], perKey ? "key_id" : undefined);
  const durations = new Histogram({
    name: "tollgate_storage_commit_duration_seconds",
    help: "Duration of a database transaction of the ledger, in seconds",
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const failuresHelp = "Database transactions of the ledger that failed and were retried";
  const failures = createCounter(registry, "tollgate_storage_commit_failures_total", failuresHelp, [])({});
  return {
    /** The ledger committed a transaction, and added this to the counts. */
    committed(durationMs: number, counts: readonly KeyUsage[]): void {
      durations.observe(durationMs / 1000);
      for (const one of counts) addCounted(one.keyId, one, one.requestCount);
    },
    /** A transaction of the ledger failed, and will be retried. */
    commitFailed: () => void failures.count++,
  };
}

/**
 * Counts requests and their tokens by one label.
 * @param label undefined: all together
 * @returns adds to the series of a value, which it keeps, so that labels are resolved only once
 */
function createUsageCounters(
  registry: Registry,
  [name, help, tokensHelp]: readonly [prefix: string, requests: string, tokens: string],
  label: string | undefined,
): (value: number | string, usage: Usage | undefined, requestCount?: number) => void {
  const labels = label === undefined ? [] : [label];
  const requests = createCounter<string>(registry, `tollgate_${name}_requests_total`, help, labels);
  const tokens = createCounter<string>(registry, `tollgate_${name}_tokens_total`, tokensHelp, [...labels, "direction"]);
  const seriesOf = (own: Record<string, string>) => ({
    requests: requests(own),
    input: tokens({ ...own, direction: "input" }),
    output: tokens({ ...own, direction: "output" }),
  });
  const all = label === undefined ? seriesOf({}) : undefined;
  const known = new Map<number | string, ReturnType<typeof seriesOf>>();
  return (value, usage, requestCount = 1) => {
    let series = all ?? known.get(value);
    if (series === undefined) {
      series = seriesOf({ [label ?? ""]: withoutControls(String(value)) });
      known.set(value, series);
    }
    series.requests.count += requestCount;
    series.input.count += usage?.inputTokens ?? 0;
    series.output.count += usage?.outputTokens ?? 0;
  };
}
