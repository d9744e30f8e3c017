import type { Entry, ListedRequest, PlaceListener, Places } from "../domain/admissions.ts";
import type { BackendStates, Choice } from "../domain/backends.ts";
import { affinityOf, nothingKnown } from "../routing/affinity.ts";
import { choose } from "../routing/choice.ts";
import { createKnownStates } from "../routing/places.ts";
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
  /** The parent has exited or is unresponsive. It must not stop the requests too: none waits for it until it replies. */
  let isSilent = false;

  async function askParent(ticket: number, request: ListedRequest): Promise<Entry | undefined> {
    const reply = parent.call("enterQueue", ticket, request).then(
      (entry) => {
        isSilent = false;
        return entry;
      },
      () => {
        isSilent = true;
        return undefined;
      },
    );
    return isSilent ? undefined : reply;
  }

  return {
    places: {
      async enter(ticket, request, listener) {
        waiting.set(ticket, listener);
        const entry = (await askParent(ticket, request)) ?? own.choose(request, known.isAnyIn);
        const hasLeft = !waiting.has(ticket);
        if (entry !== "waiting") waiting.delete(ticket);
        if (typeof entry === "object" && !hasLeft) own.set(ticket, entry);
        return entry;
      },
      report: (ticket, sign) => void parent.call("reportSign", ticket, sign).catch(ignoreFailure),
      leave(ticket, input) {
        waiting.delete(ticket);
        own.delete(ticket);
        void parent.call("leaveQueue", ticket, input).catch(ignoreFailure);
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
        const listener = waiting.get(ticket);
        // It may have gone elsewhere while the parent was silent, or be over.
        if (listener === undefined) return;
        waiting.delete(ticket);
        own.set(ticket, choice);
        listener.onGranted(choice);
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
    choose(request: ListedRequest, isAnyIn: Places["isAnyIn"]): Choice | "full" {
      const { keyId, candidates, tried, conversation, waits: mayReturn } = request;
      const rows = candidates.map((name) => ({
        name,
        spill: false,
        maxConcurrency: undefined,
        inFlight: counts.get(name) ?? 0,
        unbegun: 0,
        waitingTokens: 0,
        warmUp: undefined,
        standing: isAnyIn([name]) ? ("in" as const) : ("out" as const),
      }));
      const affinity = affinityOf(keyId, conversation);
      return choose(rows, { affinity, tried, mayReturn, workAt: nothingKnown, tokens: 0 }) ?? "full";
    },
  };
}
