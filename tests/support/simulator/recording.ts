import type { EndingKind, SimulatedRequest } from "./request.ts";

/** Times come from `performance.now()`. */
export type SimulatorEvent =
  | { type: "connected" | "closed"; at: number; connection: number }
  | { type: "head" | "request" | EndingKind; at: number; connection: number; request: SimulatedRequest };

/** A deadline only ends a test that would hang, so it is far longer than a loaded machine needs. */
const defaultDeadlineMs = 20_000;
const maxEvents = 4096;

/** Requests and events for tests to inspect or to wait for. Keeps only the latest ones. */
export function createRecording(maxRequests: number) {
  let events: SimulatorEvent[] = [];
  let requests: SimulatedRequest[] = [];
  let unread: SimulatedRequest[] = [];
  const watchers = new Set<(event: SimulatorEvent) => void>();

  const nextEvent = (what: string, predicate: (event: SimulatorEvent) => boolean, deadlineMs: number) =>
    new Promise<SimulatorEvent>((resolve, reject) => {
      const watch = (event: SimulatorEvent): void => {
        if (!predicate(event)) return;
        clearTimeout(timer);
        watchers.delete(watch);
        resolve(event);
      };
      const timer = setTimeout(() => {
        watchers.delete(watch);
        reject(new Error(`The simulator saw no ${what} within ${deadlineMs} ms`));
      }, deadlineMs);
      watchers.add(watch);
    });

  return {
    add(event: SimulatorEvent): void {
      keepLast(events, event, maxEvents);
      if (event.type === "request") {
        keepLast(requests, event.request, maxRequests);
        keepLast(unread, event.request, maxRequests);
      }
      for (const watch of watchers) watch(event);
    },
    /** The kept requests, oldest first. */
    requests: (): readonly SimulatedRequest[] => requests,
    /** The oldest complete request that no call has returned yet, or the next one to arrive. */
    async nextRequest(deadlineMs = defaultDeadlineMs): Promise<SimulatedRequest> {
      for (;;) {
        const request = unread.shift();
        if (request !== undefined) return request;
        await nextEvent("request", ({ type }) => type === "request", deadlineMs);
      }
    },
    /** The first past or future event that matches. */
    async waitFor(predicate: (event: SimulatorEvent) => boolean, deadlineMs = defaultDeadlineMs) {
      return events.find(predicate) ?? nextEvent("such event", predicate, deadlineMs);
    },
    /** Forgets requests and events. */
    clear(): void {
      events = [];
      requests = [];
      unread = [];
    },
  };
}

function keepLast<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.shift();
}
