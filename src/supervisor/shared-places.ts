import {
  type Entry,
  isChoice,
  type ListedRequest,
  type Place,
  type PlaceListener,
  type Places,
  type Rank,
} from "../domain/admissions.ts";
import type { BackendSign, BackendStates, Choice } from "../domain/backends.ts";
import type { ReportedInput } from "../domain/usage.ts";
import { affinityOf, nothingKnown } from "../routing/affinity.ts";
import { choose } from "../routing/choice.ts";
import { createShutBackends } from "../routing/dispatch.ts";
import type { ChildMethods, ParentMethods } from "./protocol.ts";
import type { Rpc } from "./rpc.ts";

/** The places that the parent shares out among all processes, as one of these sees them. @returns `methods` is what it calls */
export function createSharedPlaces(parent: Pick<Rpc<ParentMethods>, "call">): {
  places: Places & BackendStates;
  methods: Pick<ChildMethods, "placeGranted" | "placeDisplaced" | "backendsChanged">;
} {
  /** Those that the parent has not answered, or lets wait, by the numbers that it knows them by. */
  const waiting = new Map<number, Shared>();
  /** How many requests of this process are at each backend, to choose from without the parent. */
  const counts = new Map<string, number>();
  const { set, isAnyIn, onChanged } = createShutBackends();
  const ignoreFailure = (): void => {};
  /** The parent has exited or is unresponsive. It must not stop the requests too: none waits for it until it replies. */
  let isSilent = false;
  let entered = 0;

  async function askParent(number: number, request: ListedRequest): Promise<Entry | undefined> {
    const reply = parent.call("enterQueue", number, request).then(
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

  class Shared implements Place {
    readonly entry: Promise<Entry>;
    readonly #number = (entered += 1);
    #backend: string | undefined;

    constructor(
      request: ListedRequest,
      readonly listener: PlaceListener,
    ) {
      waiting.set(this.#number, this);
      this.entry = this.#enter(request);
    }

    async #enter(request: ListedRequest): Promise<Entry> {
      const entry = (await askParent(this.#number, request)) ?? chooseOwn(request, counts, isAnyIn);
      if (isChoice(entry) && waiting.has(this.#number)) this.goTo(entry.backend);
      if (isChoice(entry) || entry === "full") waiting.delete(this.#number);
      return entry;
    }

    goTo(backend: string | undefined): void {
      waiting.delete(this.#number);
      if (this.#backend !== undefined) counts.set(this.#backend, (counts.get(this.#backend) ?? 0) - 1);
      if (backend !== undefined) counts.set(backend, (counts.get(backend) ?? 0) + 1);
      this.#backend = backend;
    }

    report(sign: BackendSign): void {
      void parent.call("reportSign", this.#number, sign).catch(ignoreFailure);
    }

    leave(input?: ReportedInput): void {
      this.goTo(undefined);
      void parent.call("leaveQueue", this.#number, input).catch(ignoreFailure);
    }

    rank(): Promise<Rank | undefined> {
      return parent.call("rankInLine", this.#number).catch(() => undefined);
    }
  }

  return {
    places: {
      enter: (request, listener) => new Shared(request, listener),
      isAnyIn,
      onChanged,
      list: () => parent.call("listBackends"),
      setDraining: (name, isDraining) => void parent.call("setDraining", name, isDraining).catch(ignoreFailure),
      hasRestarted: (name) => void parent.call("hasRestarted", name).catch(ignoreFailure),
    },
    methods: {
      placeGranted(number, choice) {
        const place = waiting.get(number);
        // It may have gone elsewhere while the parent was silent, or be over.
        if (place === undefined) return;
        place.goTo(choice.backend);
        place.listener.onGranted(choice);
      },
      placeDisplaced(number) {
        waiting.get(number)?.listener.onDisplaced();
        waiting.delete(number);
      },
      backendsChanged: set,
    },
  };
}

/** Fewest in flight. */
function chooseOwn(
  { keyId, candidates, tried, conversation, waits: mayReturn }: ListedRequest,
  counts: ReadonlyMap<string, number>,
  isAnyIn: Places["isAnyIn"],
): Choice | "full" {
  const rows = candidates.map((name) => ({
    name,
    inFlight: counts.get(name) ?? 0,
    standing: isAnyIn([name]) ? ("in" as const) : ("out" as const),
  }));
  const affinity = affinityOf(keyId, conversation);
  return choose(rows, { affinity, tried, mayReturn, workAt: () => nothingKnown, tokens: 0 }) ?? "full";
}
