import { type JSX, onMount } from "solid-js";
import { Button } from "../ui/controls.tsx";
import { CopyLine } from "../ui/copy-button.tsx";
import { lazyPart, LoadFailed } from "../ui/lazy.tsx";
import { newKeyDialog, setNewKeyDialog } from "./new-key.ts";

const HandOver = lazyPart(
  async () => (await import("../start/quick-start.tsx")).HandOver,
  (state) => (state.hasFailed ? <LoadFailed /> : <p class="hint">Loading…</p>),
);

/** The secret of a key, which is shown only once. @param props.note what else the user has to know */
export function KeySecret(props: { secret: string; note?: string; onDone: () => void }): JSX.Element {
  const setSaved = (): void => void setNewKeyDialog("saved");
  let lead: HTMLParagraphElement | undefined;
  onMount(() => lead?.focus());
  return (
    <>
      <p ref={lead} tabindex="-1" class="lead">
        Copy the key now. Tollgate shows it only once; later it shows only the first and last characters. {props.note}
      </p>
      <CopyLine text={props.secret} what="the key" primary onCopied={setSaved} />
      <details open>
        <summary>Hand it over</summary>
        <HandOver apiKey={props.secret} onCopied={setSaved} />
      </details>
      <SecretActions onDone={props.onDone} />
    </>
  );
}

/** Closes the dialog that holds one secret or several. */
export function SecretActions(props: { several?: boolean; onDone: () => void }): JSX.Element {
  const isSaved = (): boolean => newKeyDialog() === "saved";
  return (
    <div class="dialog-actions">
      <Button tone={isSaved() && "primary"} onClick={() => props.onDone()}>
        {isSaved() ? "Done" : `I have saved ${props.several === true ? "them" : "it"}`}
      </Button>
    </div>
  );
}
