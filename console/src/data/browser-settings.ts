import { onCleanup, onMount } from "solid-js";

/** What this browser remembers. Storage throws where the browser forbids it: nothing is remembered then. */
export function readSetting(name: string): string | undefined {
  try {
    return localStorage.getItem(`tollgate.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function writeSetting(name: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(`tollgate.${name}`);
    else localStorage.setItem(`tollgate.${name}`, value);
  } catch {
    // Not remembered; it still holds until the page is closed.
  }
}

/** Calls `run` where another tab changes a setting, while the calling component lives. */
export function watchSetting(name: string, run: (value: string | undefined) => void): void {
  const onStorage = (event: StorageEvent): void => {
    if (event.key === `tollgate.${name}`) run(event.newValue ?? undefined);
  };
  onMount(() => addEventListener("storage", onStorage));
  onCleanup(() => removeEventListener("storage", onStorage));
}

/** How many there were the last time: what loads keeps their room, and moves nothing when it has come. */
export function savedCount(name: string, fallback: number): number {
  const count = Number(readSetting(`count.${name}`));
  return Number.isInteger(count) && count > 0 ? count : fallback;
}

export const saveCount = (name: string, count: number): void => writeSetting(`count.${name}`, String(count));
