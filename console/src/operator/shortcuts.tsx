import { For, type JSX, onCleanup, onMount } from "solid-js";
import { Dialog } from "../ui/dialog.tsx";

const shortcuts = [
  { keys: ["g", "o"], label: "Go to the overview" },
  { keys: ["g", "r"], label: "Go to requests" },
  { keys: ["g", "k"], label: "Go to API keys" },
  { keys: ["g", "u"], label: "Go to usage" },
  { keys: ["g", "g"], label: "Go to GPUs" },
  { keys: ["g", "s"], label: "Go to the settings" },
  { keys: ["g", "h"], label: "Go to the quick start" },
  { keys: ["/"], label: "Filter" },
  { keys: ["n"], label: "New API key" },
  { keys: ["?"], label: "Show keyboard shortcuts" },
] as const;

export type Shortcut = "g o" | "g r" | "g k" | "g u" | "g g" | "g s" | "g h" | "/" | "n" | "?";

/** The second key of a sequence must follow within this time. */
const sequenceMs = 1000;

const inField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest("input:not([type=checkbox], [type=radio]), textarea, select") !== null;

/** Calls `run` for each shortcut pressed outside fields and dialogs, until the calling component is removed. */
export function listenForShortcuts(run: (shortcut: Shortcut) => void): void {
  let gPressedAt = Number.NEGATIVE_INFINITY;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (inField(event.target) || document.querySelector("dialog[open]") !== null) return;
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

export function ShortcutsDialog(props: { onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => props.onClose()}>
      <dl class="shortcuts">
        <For each={shortcuts}>
          {(shortcut) => (
            <div>
              <dt>{shortcut.label}</dt>
              <dd>
                <For each={shortcut.keys}>{(key) => <kbd>{key}</kbd>}</For>
              </dd>
            </div>
          )}
        </For>
      </dl>
      <p class="hint">On a chart, the arrow keys move, Shift selects, Enter zooms and Escape resets.</p>
      <p class="hint">
        For scripts: the{" "}
        <a href="/api/openapi.json" target="_blank">
          description of the API
        </a>{" "}
        (OpenAPI).
      </p>
      <div class="dialog-actions">
        <button class="button" type="button" onClick={() => props.onClose()}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
