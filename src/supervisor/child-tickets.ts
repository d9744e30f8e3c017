import type { Entry, ListedRequest } from "../domain/admissions.ts";
import type { BackendSign, Choice } from "../domain/backends.ts";
import type { ReportedInput } from "../domain/usage.ts";
import type { Dispatch } from "../routing/dispatch.ts";

/** The places of one child, which names them by numbers. */
export function createChildTickets(
  dispatch: Dispatch,
  {
    onGranted,
    onDisplaced,
  }: {
    onGranted(number: number, choice: Choice): void;
    onDisplaced(number: number): void;
  },
) {
  const places = new Map<number, ReturnType<Dispatch["enter"]>>();

  function leaveQueue(number: number, input?: ReportedInput): void {
    places.get(number)?.leave(input);
    places.delete(number);
  }

  return {
    enterQueue(number: number, request: ListedRequest): Entry {
      const place = dispatch.enter(request, {
        onGranted: (choice) => onGranted(number, choice),
        onDisplaced: () => onDisplaced(number),
      });
      places.set(number, place);
      return place.entry;
    },
    leaveQueue,
    reportSign: (number: number, sign: BackendSign) => places.get(number)?.report(sign),
    rankInLine: (number: number) => places.get(number)?.rank(),
    /** The child is gone: gives back all its places. */
    leaveAll(): void {
      for (const number of places.keys()) leaveQueue(number);
    },
  };
}
