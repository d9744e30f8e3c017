import { createSignal, onCleanup, onMount } from "solid-js";

/** Server clock minus local clock, milliseconds. Without it, a laptop whose clock is minutes off shows fresh GPUs as stale. */
let skewMs = 0;

/** @param date the HTTP Date header, in whole seconds */
export function updateServerClock(date: string | null): void {
  const server = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(server)) return;
  const skew = server + 500 - Date.now();
  // The header's resolution and the network delay explain a difference this small.
  const newSkewMs = Math.abs(skew) < 2000 ? 0 : skew;
  if (newSkewMs === skewMs) return;
  skewMs = newSkewMs;
  setNow(serverNow());
}

/** The server time at local time `localMs`. */
export const toServerTime = (localMs: number): number => localMs + skewMs;

export const serverNow = (): number => toServerTime(Date.now());

const [now, setNow] = createSignal(serverNow());

/** The server time, as a signal that updates every second while the page is visible. */
export { now };

/** Updates `now` until the calling component is removed. */
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
