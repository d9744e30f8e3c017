import { onCleanup, onMount } from "solid-js";

/** Settings live in localStorage, which throws if the browser forbids it: then no setting outlives the page. */
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
    // The setting still applies until the page is closed.
  }
}

/** Calls `onChange` when another tab changes a setting, until the calling component is removed. */
export function watchSetting(name: string, onChange: (value: string | undefined) => void): void {
  const onStorage = (event: StorageEvent): void => {
    if (event.key === `tollgate.${name}`) onChange(event.newValue ?? undefined);
  };
  onMount(() => addEventListener("storage", onStorage));
  onCleanup(() => removeEventListener("storage", onStorage));
}

/** How many items the last visit showed. Reserving their space while they load avoids a layout shift. */
export function savedCount(name: string, fallback: number): number {
  const count = Number(readSetting(`count.${name}`));
  return Number.isInteger(count) && count > 0 ? count : fallback;
}

export const saveCount = (name: string, count: number): void => writeSetting(`count.${name}`, String(count));
