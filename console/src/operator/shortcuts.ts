import { onCleanup, onMount } from "solid-js";

export const shortcuts = [
  { keys: ["g", "o"], label: "Go to the overview" },
  { keys: ["g", "r"], label: "Go to requests" },
  { keys: ["g", "k"], label: "Go to API keys" },
  { keys: ["g", "u"], label: "Go to usage" },
  { keys: ["g", "b"], label: "Go to backends" },
  { keys: ["g", "s"], label: "Go to the settings" },
  { keys: ["g", "h"], label: "Go to the quick start" },
  { keys: ["/"], label: "Find; Ctrl or ⌘ with K too" },
  { keys: ["n"], label: "New API key" },
  { keys: ["?"], label: "Show these" },
] as const;

export type Shortcut = "g o" | "g r" | "g k" | "g u" | "g b" | "g s" | "g h" | "/" | "n" | "?";

/** The second key of a sequence must follow within this time. */
const sequenceMs = 1000;

const inField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest("input:not([type=checkbox], [type=radio]), textarea, select") !== null;

/** Calls `run` for each shortcut pressed outside fields and dialogs, the one of the box in fields too, until the calling component is removed. */
export function useShortcuts(run: (shortcut: Shortcut) => void, isOff: () => boolean): void {
  let gPressedAt = Number.NEGATIVE_INFINITY;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isOff() || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]") !== null) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key !== "k") return;
      event.preventDefault();
      return run("/");
    }
    if (inField(event.target)) return;
    const afterG = event.timeStamp - gPressedAt < sequenceMs;
    gPressedAt = Number.NEGATIVE_INFINITY;
    const typed = afterG ? `g ${event.key}` : event.key;
    const known = shortcuts.some(({ keys }) => keys.join(" ") === typed);
    if (!known) {
      if (event.key === "g") gPressedAt = event.timeStamp;
      return;
    }
    event.preventDefault();
    run(typed as Shortcut);
  };
  onMount(() => document.addEventListener("keydown", onKeyDown));
  onCleanup(() => document.removeEventListener("keydown", onKeyDown));
}
