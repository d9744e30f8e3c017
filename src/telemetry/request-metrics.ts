import { Counter, Histogram, type Registry } from "prom-client";
import type { RequestObserver, RequestRecord } from "../domain.ts";
import { createCounter } from "./series.ts";

/** Label values come from these lists alone: a stranger's path or verb must not become a series. */
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

/** Codes are our own and few; the bound keeps a mistake with them from filling the memory. */
const mostCodes = 50;

/** Seconds. From a small answer to the longest that the default timeouts allow. */
const requestBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200];

type Observe = (record: RequestRecord) => void;

/** A child has its labels resolved; it is made at its first use and kept. */
function createChildren<K, T>(make: (key: K) => T): (key: K) => T {
  const children = new Map<K, T>();
  return (key) => {
    const known = children.get(key);
    if (known !== undefined) return known;
    const child = make(key);
    children.set(key, child);
    return child;
  };
}

export function createRequestMetrics(registry: Registry, perKey: boolean): RequestObserver {
  const observers: Observe[] = [
    createRequestCounter(registry),
    createTimesObserver(registry),
    createTokenCounter(registry),
    createUpstreamErrorCounter(registry),
    ...(perKey ? [createKeyCounter(registry)] : []),
  ];
  return {
    started: () => {},
    finished(record) {
      for (const observe of observers) observe(record);
    },
  };
}

function createRequestCounter(registry: Registry): Observe {
  const requests = createCounter(registry, {
    name: "tollgate_requests_total",
    help: "Requests to /v1 whose response ended, by how it ended",
    labelNames: ["method", "endpoint", "outcome", "status"],
  });
  const children = createChildren((endpoint: string) =>
    createChildren((method: string) =>
      createChildren((outcome: string) =>
        createChildren((status: string) => requests({ method, endpoint, outcome, status })),
      ),
    ),
  );
  return ({ method, path, outcome, status }) => {
    const statusClass = statusClasses[Math.floor(status / 100)] ?? "other";
    children(knownOrOther(endpoints, path))(knownOrOther(methods, method))(outcome)(statusClass).count += 1;
  };
}

function createTimesObserver(registry: Registry): Observe {
  const labelNames = ["endpoint", "streamed"] as const;
  const durations = new Histogram({
    name: "tollgate_request_duration_seconds",
    help: "From a request's arrival to the end of its response; refused ones are left out",
    labelNames,
    buckets: requestBuckets,
    registers: [registry],
  });
  const firstBytes = new Histogram({
    name: "tollgate_time_to_first_byte_seconds",
    help: "From a request's arrival to the first byte of its response body",
    labelNames,
    buckets: requestBuckets,
    registers: [registry],
  });
  const childrenOf = (streamed: "true" | "false") =>
    createChildren((endpoint: string) => ({
      duration: durations.labels(endpoint, streamed),
      firstByte: firstBytes.labels(endpoint, streamed),
    }));
  const [streams, others] = [childrenOf("true"), childrenOf("false")];
  return (record) => {
    // A refusal takes no time, and many of them would hide how long answers take.
    if (record.outcome === "refused") return;
    const { duration, firstByte } = (record.streamed ? streams : others)(knownOrOther(endpoints, record.path));
    duration.observe(record.durationMs / 1000);
    if (record.firstByteMs !== undefined) firstByte.observe(record.firstByteMs / 1000);
  };
}

function createTokenCounter(registry: Registry): Observe {
  const tokens = createCounter(registry, {
    name: "tollgate_tokens_total",
    help: "Tokens that the backend reported for responses",
    labelNames: ["direction"],
  });
  const [input, output] = [tokens({ direction: "input" }), tokens({ direction: "output" })];
  return ({ usage }) => {
    if (usage === undefined) return;
    input.count += usage.inputTokens;
    output.count += usage.outputTokens;
  };
}

function createUpstreamErrorCounter(registry: Registry): Observe {
  const errors = new Counter({
    name: "tollgate_upstream_errors_total",
    help: "Requests that failed because of the backend, by what went wrong",
    labelNames: ["code"],
    registers: [registry],
  });
  const codes = new Set<string>();
  return ({ outcome, code = "unknown" }) => {
    if (outcome !== "upstream_failed" && outcome !== "timed_out") return;
    if (codes.size < mostCodes) codes.add(code);
    errors.inc({ code: knownOrOther(codes, code) });
  };
}

function createKeyCounter(registry: Registry): Observe {
  const requests = createCounter(registry, {
    name: "tollgate_key_requests_total",
    help: "Requests to /v1 whose response ended, by key",
    labelNames: ["key_id"],
  });
  const tokens = createCounter(registry, {
    name: "tollgate_key_tokens_total",
    help: "Tokens that the backend reported for responses, by key",
    labelNames: ["key_id", "direction"],
  });
  const children = createChildren((id: number) => ({
    requests: requests({ key_id: String(id) }),
    input: tokens({ key_id: String(id), direction: "input" }),
    output: tokens({ key_id: String(id), direction: "output" }),
  }));
  return ({ keyId, usage }) => {
    if (keyId === undefined) return;
    const child = children(keyId);
    child.requests.count += 1;
    child.input.count += usage?.inputTokens ?? 0;
    child.output.count += usage?.outputTokens ?? 0;
  };
}
