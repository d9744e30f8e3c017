/** The methods that requests and responses wait for. */
const urgentMethods: ReadonlySet<string> = new Set(["usage.add", "limits.take"]);

export const isUrgent = ({ method }: { method: string }): boolean => urgentMethods.has(method);

/** The calls that wait for the storage thread: counts and leases first, everything else in order. */
export function createCallQueue<Call extends { method: string }>() {
  const urgent: Call[] = [];
  const others: Call[] = [];
  return {
    add: (call: Call): void => void (isUrgent(call) ? urgent : others).push(call),
    next: (): Call | undefined => urgent.shift() ?? others.shift(),
    isEmpty: (): boolean => urgent.length === 0 && others.length === 0,
  };
}

/** How many calls may wait for the storage thread: so few that the last of them waits less than half a second. */
export const maxWaitingCalls = 500;

const unlimitedMethods: ReadonlySet<string> = new Set([...urgentMethods, "checkWritable", "closeReport", "close"]);

/** Whether a call is refused while too many others wait. Counts never are, nor calls that free memory or run once a second. */
export const isLimited = (method: string): boolean => !unlimitedMethods.has(method);
