/** The calls that wait for the storage thread: counts first, everything else in order. */
export interface CallQueue<Call> {
  add(call: Call): void;
  next(): Call | undefined;
}

/** The one method that responses wait for. */
const countMethod = "usage.add";

export function createCallQueue<Call extends { method: string }>(): CallQueue<Call> {
  const counts: Call[] = [];
  const others: Call[] = [];
  return {
    add: (call) => void (call.method === countMethod ? counts : others).push(call),
    next: () => counts.shift() ?? others.shift(),
  };
}

/** How many calls may wait for the storage thread: those that wait longest do so for less than half a second. */
export const maxWaitingCalls = 500;

const unlimitedMethods: ReadonlySet<string> = new Set([countMethod, "checkWritable", "closeReport", "close"]);

/** Whether a call is refused while too many others wait. Counts never are, nor what frees memory or is asked once a second. */
export const isLimited = (method: string): boolean => !unlimitedMethods.has(method);
