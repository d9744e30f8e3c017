import type { ListedRequest, PlaceListener, Places } from "../domain/admissions.ts";
import type { BackendStates, Choice } from "../domain/backends.ts";
import { affinityOf, nothingKnown } from "../routing/affinity.ts";
import { choose } from "../routing/choice.ts";
import { createKnownStates } from "../routing/known-states.ts";
import type { ChildMethods, ParentMethods } from "./protocol.ts";
import type { Rpc } from "./rpc.ts";

/** The places that the parent shares out among all processes, as one of these sees them. */
export interface SharedPlaces {
  places: Places & BackendStates;
  /** What the parent calls. */
  methods: Pick<ChildMethods, "placeGranted" | "placeDisplaced" | "backendsChanged">;
}

export function createSharedPlaces(parent: Pick<Rpc<ParentMethods>, "call">): SharedPlaces {
  /** What runs when a request no longer has to wait, by its ticket. */
  const waiting = new Map<number, PlaceListener>();
  const own = createOwnChoice();
  const known = createKnownStates();
  const ignoreFailure = (): void => {};

  return {
    places: {
      async enter(ticket, request, listener) {
        waiting.set(ticket, listener);
        // A parent that does not reply has exited or is unresponsive: it must not stop the requests too.
        const entry = await parent
          .call("enterQueue", ticket, request)
          .catch(() => (request.waitsFor === "place" ? own.choose(request, known.isAnyIn) : "waiting"));
        if (entry !== "waiting") waiting.delete(ticket);
        if (typeof entry === "object") own.set(ticket, entry);
        return entry;
      },
      report: (ticket, sign) => void parent.call("reportSign", ticket, sign).catch(ignoreFailure),
      leave(ticket) {
        waiting.delete(ticket);
        own.delete(ticket);
        void parent.call("leaveQueue", ticket).catch(ignoreFailure);
      },
      isAnyIn: known.isAnyIn,
      onChanged: known.onChanged,
      rankOf: (ticket) => parent.call("rankInLine", ticket).catch(() => undefined),
      list: () => parent.call("listBackends"),
      setDraining: (name, isDraining) => void parent.call("setDraining", name, isDraining).catch(ignoreFailure),
      hasRestarted: (name) => void parent.call("hasRestarted", name).catch(ignoreFailure),
    },
    methods: {
      placeGranted(ticket, choice) {
        own.set(ticket, choice);
        waiting.get(ticket)?.onGranted(choice);
        waiting.delete(ticket);
      },
      placeDisplaced(ticket) {
        waiting.get(ticket)?.onDisplaced();
        waiting.delete(ticket);
      },
      backendsChanged: known.set,
    },
  };
}

/** Where the requests of this process are, to choose from without the parent. */
function createOwnChoice() {
  const backends = new Map<number, string>();
  const counts = new Map<string, number>();
  const count = (backend: string, by: number): void => void counts.set(backend, (counts.get(backend) ?? 0) + by);

  function remove(ticket: number): void {
    const backend = backends.get(ticket);
    if (backend !== undefined) count(backend, -1);
    backends.delete(ticket);
  }

  return {
    set(ticket: number, { backend }: Choice): void {
      remove(ticket);
      backends.set(ticket, backend);
      count(backend, 1);
    },
    delete: remove,
    /** Fewest in flight. */
    choose({ keyId, candidates, tried, conversation }: ListedRequest, isAnyIn: Places["isAnyIn"]): Choice | "full" {
      const rows = candidates.map((name) => ({
        name,
        spill: false,
        maxConcurrency: undefined,
        inFlight: counts.get(name) ?? 0,
        unbegun: 0,
        waitingCharacters: 0,
        warmUp: undefined,
        standing: isAnyIn([name]) ? ("in" as const) : ("out" as const),
      }));
      return (
        choose(rows, { affinity: affinityOf(keyId, conversation), tried, workAt: nothingKnown, characters: 0 }) ??
        "full"
      );
    },
  };
}
