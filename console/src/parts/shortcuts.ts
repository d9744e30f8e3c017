import { onCleanup, onMount } from "solid-js";

export const shortcuts = [
  { keys: ["g", "o"], does: "Go to the overview" },
  { keys: ["g", "k"], does: "Go to API keys" },
  { keys: ["g", "u"], does: "Go to usage" },
  { keys: ["g", "g"], does: "Go to GPUs" },
  { keys: ["/"], does: "Filter" },
  { keys: ["n"], does: "New API key" },
  { keys: ["?"], does: "Show these shortcuts" },
] as const;

export type Shortcut = "g o" | "g k" | "g u" | "g g" | "/" | "n" | "?";

/** Two keys belong together when the second follows within this. */
const sequenceMs = 1000;

const inField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest("input:not([type=checkbox], [type=radio]), textarea, select") !== null;

/** Calls `run` for each shortcut that is typed outside of fields and dialogs, while the calling component lives. */
export function listenForShortcuts(run: (shortcut: Shortcut) => void): void {
  let wentAt = Number.NEGATIVE_INFINITY;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (inField(event.target) || document.querySelector("dialog[open]") !== null) return;
    const afterG = event.timeStamp - wentAt < sequenceMs;
    wentAt = Number.NEGATIVE_INFINITY;
    const typed = afterG ? `g ${event.key}` : event.key;
    const known = shortcuts.some(({ keys }) => keys.join(" ") === typed);
    if (!known) {
      if (event.key === "g") wentAt = event.timeStamp;
      return;
    }
    event.preventDefault();
    run(typed as Shortcut);
  };
  onMount(() => document.addEventListener("keydown", onKeyDown));
  onCleanup(() => document.removeEventListener("keydown", onKeyDown));
}
