import { For, type JSX } from "solid-js";
import { Dialog } from "../ui/dialog.tsx";
import { shortcuts } from "./shortcuts.tsx";

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
