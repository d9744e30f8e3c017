import { createFairQueue } from "./fair-queue.ts";
import type { Places } from "../proxy/request/queue.ts";

/** The places of a process that has the backend to itself. */
export function createLocalPlaces({ places, maxWaiting }: { places: number; maxWaiting: number }): Places {
  const listeners = new Map<number, () => void>();
  const queue = createFairQueue<number>({
    places,
    maxWaiting,
    onGranted(ticket) {
      listeners.get(ticket)?.();
      listeners.delete(ticket);
    },
  });
  return {
    async enter(ticket, keyId, onGranted) {
      const state = queue.enter(ticket, keyId);
      if (state === "waiting") listeners.set(ticket, onGranted);
      return state;
    },
    leave(ticket) {
      listeners.delete(ticket);
      queue.leave(ticket);
    },
  };
}
