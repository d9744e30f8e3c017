import { createFairQueue } from "./fair-queue.ts";
import type { PlaceListener, Places } from "../domain/admissions.ts";

/** The list of waiting requests of a process that has the backend to itself, and its places there. */
export function createLocalPlaces(options: { places: number | undefined; maxWaiting: number }): Places {
  const listeners = new Map<number, PlaceListener>();
  const queue = createFairQueue<number>({
    ...options,
    onGranted(ticket) {
      listeners.get(ticket)?.onGranted();
      listeners.delete(ticket);
    },
    onDisplaced(ticket) {
      listeners.get(ticket)?.onDisplaced();
      listeners.delete(ticket);
    },
  });
  return {
    async enter(ticket, { keyId, waitsFor }, listener) {
      const state = queue.enter(ticket, keyId, waitsFor);
      if (state === "waiting") listeners.set(ticket, listener);
      else listeners.delete(ticket);
      return state;
    },
    leave(ticket) {
      listeners.delete(ticket);
      queue.leave(ticket);
    },
  };
}
