import { Gauge, Histogram, type Registry } from "prom-client";
import { backendStates, type BackendStates, type BackendStatus, cacheCountNames } from "../domain/backends.ts";
import type { RequestRecord } from "../domain/requests.ts";
import { createCounter } from "./series.ts";
import { cacheCountsOf } from "./traffic-recorder.ts";

/** More than anybody has: bounds the series should names change often. */
const maxBackends = 200;

/** Seconds. */
const firstByteBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** What a backend was given to read, and how the choice among backends did. */
const cacheCounters = {
  inputTokens: ["input_tokens", "Tokens of the input that a backend reported"],
  cachedTokens: ["cached_input_tokens", "Tokens of the input that came from a backend's cache"],
  expectedTokens: [
    "expected_cached_input_tokens",
    "Tokens of the input that were expected to come from a backend's cache",
  ],
  regretTokens: [
    "regret_tokens",
    "Tokens of the input that a backend read although another one would have had less to do",
  ],
} as const;

/** Adds what is known of each backend of a file of models. @returns told of each request that ended */
export function addBackendMetrics(registry: Registry, list: BackendStates["list"]): (record: RequestRecord) => void {
  addBackendGauges(registry, list);
  const requests = createCounter(
    registry,
    "tollgate_backend_requests_total",
    "Requests that were sent to a backend and ended, by backend and outcome",
    ["backend", "outcome"],
  );
  const firstBytes = new Histogram({
    name: "tollgate_backend_time_to_first_byte_seconds",
    help: "Time from the arrival of a stream's request to the first byte of its body, by backend, in seconds",
    labelNames: ["backend"],
    buckets: firstByteBuckets,
    registers: [registry],
  });
  const tokens = cacheCountNames.map((count) => {
    const [name, help] = cacheCounters[count];
    return { count, counter: createCounter(registry, `tollgate_backend_${name}_total`, help, ["backend"]) };
  });
  const create = (backend: string) => ({
    tokens: tokens.map(({ count, counter }) => ({ count, series: counter({ backend }) })),
    outcomes: new Map<string, { count: number }>(),
    firstByte: firstBytes.labels(backend),
  });
  const known = new Map<string, ReturnType<typeof create>>();

  return (record) => {
    const { backend, outcome, streamed, firstByteMs } = record;
    if (backend === undefined) return;
    const name = known.has(backend) || known.size < maxBackends ? backend : "other";
    const series = known.getOrInsertComputed(name, create);
    series.outcomes.getOrInsertComputed(outcome, () => requests({ backend: name, outcome })).count += 1;
    const counts = cacheCountsOf(record);
    for (const one of series.tokens) one.series.count += counts[one.count];
    if (streamed && firstByteMs !== undefined) series.firstByte.observe(firstByteMs / 1000);
  };
}

/** All processes of a machine report the same values. A backend that left the file has none. */
function addBackendGauges(registry: Registry, list: BackendStates["list"]): void {
  const add = (name: string, help: string, labels: string[], set: (gauge: Gauge, one: BackendStatus) => void): void => {
    const gauge: Gauge = new Gauge({
      name: `tollgate_backend_${name}`,
      help,
      labelNames: ["backend", ...labels],
      aggregator: "max",
      registers: [registry],
      async collect() {
        const listed = (await list()).slice(0, maxBackends);
        gauge.reset();
        for (const one of listed) set(gauge, one);
      },
    });
  };

  add("state", "1 for the state that the backend is in: in, out or draining", ["state"], (gauge, one) => {
    for (const state of backendStates) gauge.set({ backend: one.name, state }, one.state === state ? 1 : 0);
  });
  add("in_flight_requests", "Requests that have a place at the backend", [], (gauge, one) =>
    gauge.set({ backend: one.name }, one.inFlight),
  );
  const waitingHelp = "Requests that wait and may use the backend, for a place or until it has read another prompt";
  add("waiting_requests", waitingHelp, ["for"], (gauge, { name, waiting, waitingForPrefill = 0 }) => {
    gauge.set({ backend: name, for: "place" }, waiting - waitingForPrefill);
    gauge.set({ backend: name, for: "prefill" }, waitingForPrefill);
  });
}
