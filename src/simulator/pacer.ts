/** Calls every member at its own rate from one timer, since thousands of timers cost more than the frames they send. */
export interface Pacer {
  /** @returns leave */
  join(perSecond: number, onBeat: () => void): () => void;
  close(): void;
}

interface Member {
  periodMs: number;
  dueMs: number;
  onBeat: () => void;
}

const tickMs = 5;

export function createPacer(): Pacer {
  const members = new Set<Member>();
  let timer: ReturnType<typeof setInterval> | undefined;

  const tick = (): void => {
    const nowMs = performance.now();
    for (const member of members) {
      if (member.dueMs > nowMs) continue;
      // Counted from when it was due, so that ticks which come late do not lower the rate. A member that is more than
      // a beat behind has lost those beats: a backlog of them would come out as one burst.
      member.dueMs = Math.max(member.dueMs, nowMs - member.periodMs) + member.periodMs;
      member.onBeat();
    }
  };

  const leave = (member: Member): void => {
    members.delete(member);
    if (members.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };

  return {
    join(perSecond, onBeat) {
      const periodMs = 1000 / perSecond;
      const member: Member = { periodMs, dueMs: performance.now() + periodMs, onBeat };
      members.add(member);
      timer ??= setInterval(tick, tickMs);
      return () => leave(member);
    },
    close() {
      members.clear();
      clearInterval(timer);
    },
  };
}
