import type { BackendStatus, Choice } from "../domain/backends.ts";
import type { Catalog } from "../domain/models.ts";
import { nothingKnown } from "../routing/affinity.ts";
import { choose } from "../routing/choice.ts";

const standings = { in: "in", out: "out", draining: "closed" } as const;

/** Where a request would go now, by the rules of the choice; undefined: it would wait. */
export function foresee(
  { backends }: Pick<Catalog, "backends">,
  states: readonly BackendStatus[],
  candidates: readonly string[],
): Choice | undefined {
  const rows = candidates.flatMap((name) => {
    const backend = backends.find((one) => one.name === name);
    const status = states.find((one) => one.name === name);
    if (backend === undefined || status === undefined) return [];
    const { spill, maxConcurrency } = backend;
    const standing = standings[status.state];
    const load = { inFlight: status.inFlight, unbegun: 0, waitingCharacters: 0, warmUp: undefined };
    return { name, spill, maxConcurrency, ...load, standing };
  });
  return choose(rows, { affinity: "", tried: [], mayReturn: false, workAt: nothingKnown, characters: 0 });
}
