import type { Entry, ListedRequest, Rank } from "../domain/admissions.ts";
import type { BackendSign, Choice } from "../domain/backends.ts";
import type { ReportedInput } from "../domain/usage.ts";
import type { Dispatch } from "../routing/dispatch.ts";

/** A request of a child that has or wants a place. */
export interface Ticket {
  grant(choice: Choice): void;
  /** It no longer waits: it had to make room for a request of another key. */
  displace(): void;
}

/** The tickets of one child. */
export function createChildTickets(
  dispatch: Dispatch<Ticket>,
  {
    onGranted,
    onDisplaced,
  }: {
    onGranted(number: number, choice: Choice): void;
    onDisplaced(number: number): void;
  },
) {
  const tickets = new Map<number, Ticket>();

  function leaveQueue(number: number, input?: ReportedInput): void {
    const ticket = tickets.get(number);
    tickets.delete(number);
    if (ticket !== undefined) dispatch.leave(ticket, input);
  }

  return {
    enterQueue(number: number, request: ListedRequest): Entry {
      const ticket = tickets.get(number) ?? {
        grant: (choice: Choice) => onGranted(number, choice),
        displace: () => onDisplaced(number),
      };
      const entry = dispatch.enter(ticket, request);
      if (entry !== "full") tickets.set(number, ticket);
      return entry;
    },
    leaveQueue,
    reportSign(number: number, sign: BackendSign): void {
      const ticket = tickets.get(number);
      if (ticket !== undefined) dispatch.report(ticket, sign);
    },
    rankInLine(number: number): Rank | undefined {
      const ticket = tickets.get(number);
      return ticket && dispatch.rankOf(ticket);
    },
    /** The child is gone: gives back all its places. */
    leaveAll(): void {
      for (const number of tickets.keys()) leaveQueue(number);
    },
  };
}
