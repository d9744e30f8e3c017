import { Gauge, Histogram, type Registry } from "prom-client";
import { backendStates, type BackendStates, type BackendStatus } from "../domain/backends.ts";
import type { RequestRecord } from "../domain/requests.ts";
import { createCounter } from "./series.ts";

/** More than anybody has: bounds the series should names change often. */
const maxBackends = 200;

/** Seconds. */
const firstByteBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Adds what is known of each backend of a file of models. @returns told of each request that ended */
export function addBackendMetrics(registry: Registry, list: BackendStates["list"]): (record: RequestRecord) => void {
  addBackendGauges(registry, list);
  const requests = createCounter(registry, {
    name: "tollgate_backend_requests_total",
    help: "Requests that were sent to a backend and ended, by backend and outcome",
    labelNames: ["backend", "outcome"],
  });
  const firstBytes = new Histogram({
    name: "tollgate_backend_time_to_first_byte_seconds",
    help: "Time from the arrival of a stream's request to the first byte of its body, by backend, in seconds",
    labelNames: ["backend"],
    buckets: firstByteBuckets,
    registers: [registry],
  });
  const create = (backend: string) => ({
    outcomes: new Map<string, { count: number }>(),
    firstByte: firstBytes.labels(backend),
  });
  const known = new Map<string, ReturnType<typeof create>>();

  return ({ backend, outcome, streamed, firstByteMs }) => {
    if (backend === undefined) return;
    const name = known.has(backend) || known.size < maxBackends ? backend : "other";
    const series = known.get(name) ?? create(name);
    known.set(name, series);
    const ended = series.outcomes.get(outcome) ?? requests({ backend: name, outcome });
    series.outcomes.set(outcome, ended);
    ended.count += 1;
    if (streamed && firstByteMs !== undefined) series.firstByte.observe(firstByteMs / 1000);
  };
}

/** All processes of a machine report the same values. A backend that left the file has none. */
function addBackendGauges(registry: Registry, list: BackendStates["list"]): void {
  function add<L extends string>(
    options: { name: string; help: string; labelNames: readonly L[] },
    set: (gauge: Gauge<L>, one: BackendStatus) => void,
  ): void {
    const gauge: Gauge<L> = new Gauge({
      ...options,
      aggregator: "max",
      registers: [registry],
      async collect() {
        const listed = (await list()).slice(0, maxBackends);
        gauge.reset();
        for (const one of listed) set(gauge, one);
      },
    });
  }

  add(
    {
      name: "tollgate_backend_state",
      help: "1 for the state that the backend is in: in, out or draining",
      labelNames: ["backend", "state"],
    },
    (gauge, { name: backend, state: its }) => {
      for (const state of backendStates) gauge.set({ backend, state }, its === state ? 1 : 0);
    },
  );
  add(
    {
      name: "tollgate_backend_in_flight_requests",
      help: "Requests that have a place at the backend",
      labelNames: ["backend"],
    },
    (gauge, { name: backend, inFlight }) => gauge.set({ backend }, inFlight),
  );
  add(
    {
      name: "tollgate_backend_waiting_requests",
      help: "Requests that wait and may use the backend",
      labelNames: ["backend"],
    },
    (gauge, { name: backend, waiting }) => gauge.set({ backend }, waiting),
  );
}
