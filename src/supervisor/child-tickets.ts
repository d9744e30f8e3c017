import type { EntryState, FairQueue, WaitsFor } from "../admission/fair-queue.ts";

/** A request of a child that has or wants a place. */
export interface Ticket {
  grant(): void;
  /** It no longer waits: it had to make room for a request of another key. */
  displace(): void;
}

/** The tickets of one child. */
export interface ChildTickets {
  enterQueue(number: number, keyId: number, waitsFor: WaitsFor): EntryState;
  leaveQueue(number: number): void;
  /** The child is gone: gives back all its places. */
  leaveAll(): void;
}

export function createChildTickets(
  queue: FairQueue<Ticket>,
  { onGranted, onDisplaced }: Record<"onGranted" | "onDisplaced", (number: number) => void>,
): ChildTickets {
  const tickets = new Map<number, Ticket>();

  function leaveQueue(number: number): void {
    const ticket = tickets.get(number);
    tickets.delete(number);
    if (ticket !== undefined) queue.leave(ticket);
  }

  return {
    enterQueue(number, keyId, waitsFor) {
      const ticket = tickets.get(number) ?? { grant: () => onGranted(number), displace: () => onDisplaced(number) };
      const state = queue.enter(ticket, keyId, waitsFor);
      if (state !== "full") tickets.set(number, ticket);
      return state;
    },
    leaveQueue,
    leaveAll() {
      for (const number of tickets.keys()) leaveQueue(number);
    },
  };
}
