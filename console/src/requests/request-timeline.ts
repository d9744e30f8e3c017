/** When a request came to each point: milliseconds since its arrival or the point before. Null: it did not come so far. */
export interface RequestTimes {
  queue_ms: number | null;
  upstream_ms: number | null;
  first_byte_ms: number | null;
  duration_ms: number;
}

export interface Phase {
  name: string;
  fromMs: number;
  toMs: number;
}

/** The phases that a request went through, without gaps. A phase that it never left reaches its end. */
export function phasesOf(times: RequestTimes): Phase[] {
  const { queue_ms: sent, upstream_ms: waited, first_byte_ms: firstByte, duration_ms: end } = times;
  const head = sent === null || waited === null ? null : sent + waited;
  const steps: [name: string, until: number | null][] = [
    ["In Tollgate, until sent to the backend", sent],
    ["Backend, until its response began", head],
    ["Until the first byte reached the client", firstByte],
    ["Response", end],
  ];
  const phases: Phase[] = [];
  let fromMs = 0;
  for (const [name, until] of steps) {
    const toMs = until === null ? end : Math.min(Math.max(until, fromMs), end);
    phases.push({ name, fromMs, toMs });
    fromMs = toMs;
    if (until === null) break;
  }
  return phases;
}
