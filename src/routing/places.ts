import type { Places } from "../domain/admissions.ts";
import type { BackendStates } from "../domain/backends.ts";
import { createDispatch, type DispatchOptions } from "./dispatch.ts";

/** The places of a process that has the backends to itself. */
export function createLocalPlaces(options: Omit<DispatchOptions, "onChanged">): Places & BackendStates & Disposable {
  const { set, isAnyIn, onChanged } = createShutBackends();
  const dispatch = createDispatch({ ...options, onChanged: set });
  return { ...dispatch, isAnyIn, onChanged, list: async () => dispatch.list() };
}

/** What a process knows of the states of backends, wherever these are watched. */
export function createShutBackends() {
  const listeners = new Set<() => void>();
  let known: ReadonlySet<string> = new Set();
  return {
    /** @param shut those that take no requests now */
    set(shut: readonly string[]): void {
      known = new Set(shut);
      for (const listener of listeners) listener();
    },
    isAnyIn: (backends: readonly string[]): boolean => backends.some((name) => !known.has(name)),
    onChanged(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
