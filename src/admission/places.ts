import { createFairQueue } from "./fair-queue.ts";
import type { PlaceListener, Places } from "../domain/admissions.ts";

/** The places of a process that has the backend to itself. */
export function createLocalPlaces({ places, maxWaiting }: { places: number; maxWaiting: number }): Places {
  const listeners = new Map<number, PlaceListener>();
  const queue = createFairQueue<number>({
    places,
    maxWaiting,
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
    async enter(ticket, keyId, listener) {
      const state = queue.enter(ticket, keyId);
      if (state === "waiting") listeners.set(ticket, listener);
      return state;
    },
    leave(ticket) {
      listeners.delete(ticket);
      queue.leave(ticket);
    },
  };
}
