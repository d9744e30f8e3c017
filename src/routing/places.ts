import type { PlaceListener, Places } from "../domain/admissions.ts";
import type { BackendStates } from "../domain/backends.ts";
import { createDispatch, type DispatchOptions } from "./dispatch.ts";
import { createKnownStates } from "./known-states.ts";

/** The places of a process that has the backends to itself. */
export function createLocalPlaces(
  options: Omit<DispatchOptions<number>, "onGranted" | "onDisplaced" | "onChanged">,
): Places & BackendStates & Disposable {
  const listeners = new Map<number, PlaceListener>();
  const known = createKnownStates();
  const dispatch = createDispatch<number>({
    ...options,
    onGranted(ticket, choice) {
      listeners.get(ticket)?.onGranted(choice);
      listeners.delete(ticket);
    },
    onDisplaced(ticket) {
      listeners.get(ticket)?.onDisplaced();
      listeners.delete(ticket);
    },
    onChanged: known.set,
  });
  return {
    enter(ticket, request, listener) {
      const entry = dispatch.enter(ticket, request);
      if (entry === "waiting") listeners.set(ticket, listener);
      else listeners.delete(ticket);
      return entry;
    },
    report: dispatch.report,
    leave(ticket, cachedShare) {
      listeners.delete(ticket);
      dispatch.leave(ticket, cachedShare);
    },
    isAnyIn: known.isAnyIn,
    onChanged: known.onChanged,
    rankOf: async (ticket) => dispatch.rankOf(ticket),
    list: async () => dispatch.list(),
    setDraining: dispatch.setDraining,
    hasRestarted: dispatch.hasRestarted,
    [Symbol.dispose]: dispatch[Symbol.dispose],
  };
}
