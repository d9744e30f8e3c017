import { For, type JSX, Show } from "solid-js";
import { dismissToast, toasts } from "../lib/toasts.ts";
import { IconButton } from "./controls.tsx";

/** The visible toasts. Screen readers announce them. */
export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status" aria-live="polite">
      <For each={toasts()}>
        {(toast) => (
          <div class="toast" data-tone={toast.tone}>
            <span>{toast.text}</span>
            <Show when={toast.undo}>
              {(undo) => (
                <button
                  class="link"
                  type="button"
                  onClick={() => {
                    dismissToast(toast);
                    undo()();
                  }}
                >
                  Undo
                </button>
              )}
            </Show>
            <IconButton icon="close" label="Dismiss" onClick={() => dismissToast(toast)} />
          </div>
        )}
      </For>
    </div>
  );
}
