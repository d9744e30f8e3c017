import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { type QueryResult, useChange } from "../queries.ts";

const getBackends = () => responseBody(api.backends.get());
export type Backends = Awaited<ReturnType<typeof getBackends>>;
export type Backend = Backends["backends"][number];

export const useBackendsQuery = (): QueryResult<typeof getBackends> =>
  useQuery(() => ({ queryKey: ["backends"], queryFn: getBackends, refetchInterval: 5000, reconcile: "name" }));

interface Drain {
  name: string;
  draining: boolean;
}

export const useDrain = () =>
  useChange(({ name, draining }: Drain) => responseBody(api.backends({ name }).patch({ draining })), {
    done: ({ name, draining }) =>
      draining ? `${name} is taken out: it gets no new requests` : `${name} gets requests again`,
    failed: ({ name }) => `${name} was not changed`,
    refreshes: ["backends"],
  });

const getReconciliation = () => responseBody(api.reconciliation.get({ query: { days: 30 } }));
export type Reconciliation = Awaited<ReturnType<typeof getReconciliation>>;

export const useReconciliationQuery = (): QueryResult<typeof getReconciliation> =>
  useQuery(() => ({ queryKey: ["reconciliation"], queryFn: getReconciliation, refetchInterval: 60_000 }));

/** One that is taken out may be stopped once nothing runs on it, and is no alarm. The only one is in although it does not respond. */
export function verdictOf(backend: Pick<Backend, "state" | "in_flight" | "failing_since">): {
  label: string;
  tone: "good" | "bad";
} {
  const { state, in_flight: inFlight, failing_since: failingSince } = backend;
  if (state === "in" && failingSince !== null) return { label: "Does not respond", tone: "bad" };
  if (state === "in") return { label: "In", tone: "good" };
  if (state === "out") return { label: "Out", tone: "bad" };
  return { label: inFlight === 0 ? "Taken out" : "Taken out, still running", tone: "good" };
}

/** The models that no other backend serves while one drains. */
export const modelsLeftAlone = (drained: Backend, all: readonly Backend[]): string[] =>
  drained.models.filter(
    (model) =>
      !all.some(({ name, state, models }) => name !== drained.name && state === "in" && models.includes(model)),
  );

/** Processes whose file is not the one of the process that responded. */
export const othersOf = ({ file_hash: hash, instances }: Backends): Backends["instances"] =>
  instances.filter(({ file_hash: other }) => other !== hash);

/** Enough to tell two files apart. */
export const shortHash = (hash: string): string => hash.slice(0, 12);
