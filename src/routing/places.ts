import type { PlaceListener, Places } from "../domain/admissions.ts";
import type { BackendStates } from "../domain/backends.ts";
import { createDispatch, type DispatchOptions } from "./dispatch.ts";

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
    leave(ticket, input) {
      listeners.delete(ticket);
      dispatch.leave(ticket, input);
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

/** What a process knows of the states of backends, wherever these are watched. */
export interface KnownStates extends Pick<Places, "isAnyIn" | "onChanged"> {
  /** @param shut those that take no requests now */
  set(shut: readonly string[]): void;
}

export function createKnownStates(): KnownStates {
  const listeners = new Set<() => void>();
  let known: ReadonlySet<string> = new Set();
  return {
    set(shut) {
      known = new Set(shut);
      for (const listener of listeners) listener();
    },
    isAnyIn: (backends) => backends.some((name) => !known.has(name)),
    onChanged(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
