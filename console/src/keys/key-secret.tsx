import type { JSX } from "solid-js";
import { ShownOnce } from "../ui/copy-button.tsx";
import { lazyPart, LoadFailed } from "../ui/lazy.tsx";
import { closeNewKeyDialog, newKeyDialog, setNewKeyDialog } from "./new-key.ts";

const HandOver = lazyPart(
  async () => (await import("../start/quick-start.tsx")).HandOver,
  (state) => (state.hasFailed ? <LoadFailed /> : <p class="hint">Loading…</p>),
);

/** The secret of a key, and how it is handed over. @param props.note what else the user has to know */
export function KeySecret(props: { secret: string; note?: string }): JSX.Element {
  const setSaved = (): void => void setNewKeyDialog("saved");
  return (
    <ShownOnce
      {...props}
      what="the key"
      isSaved={newKeyDialog() === "saved"}
      onCopied={setSaved}
      onDone={closeNewKeyDialog}
    >
      <details open>
        <summary>Hand it over</summary>
        <HandOver apiKey={props.secret} onCopied={setSaved} />
      </details>
    </ShownOnce>
  );
}
