import { createSignal, onCleanup, onMount } from "solid-js";

/** Server's clock less this machine's, milliseconds: a laptop that is minutes off must not call fresh GPUs stale. */
let skewMs = 0;

/** @param date an HTTP Date header, exact to the second */
export function updateServerClock(date: string | null): void {
  const server = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(server)) return;
  const skew = server + 500 - Date.now();
  // Within what the header's whole seconds and the way here explain, the clocks agree.
  const noted = Math.abs(skew) < 2000 ? 0 : skew;
  if (noted === skewMs) return;
  skewMs = noted;
  setNow(serverNow());
}

/** The server's time when this machine's clock said `localMs`. */
export const toServerTime = (localMs: number): number => localMs + skewMs;

export const serverNow = (): number => toServerTime(Date.now());

const [now, setNow] = createSignal(serverNow());

/** The server's time as a signal that ticks each second while someone looks. */
export { now };

/** Starts the ticking for as long as the calling component lives. */
export function tickWhileVisible(): void {
  const tick = (): void => {
    if (!document.hidden) setNow(serverNow());
  };
  onMount(() => {
    const timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
    onCleanup(() => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    });
  });
}
