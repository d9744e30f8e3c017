import { createEffect, createSignal, onCleanup } from "solid-js";

/**
 * The dialog for a new key. `secret`: it holds, or is about to, a secret that cannot be shown again; then only the user
 * closes it, not a change of page.
 */
type NewKeyDialogState = "closed" | "form" | "secret";

const [newKeyDialog, setNewKeyDialog] = createSignal<NewKeyDialogState>("closed");
export { newKeyDialog, setNewKeyDialog };

export const openNewKeyForm = (): void => void setNewKeyDialog((state) => (state === "closed" ? "form" : state));

export const closeNewKeyForm = (): void => void setNewKeyDialog((state) => (state === "form" ? "closed" : state));

/** Has the browser ask before the page is left, while `isUnsaved`. */
export function createUnloadGuard(isUnsaved: () => boolean): void {
  const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
  createEffect(() => {
    if (!isUnsaved()) return;
    addEventListener("beforeunload", ask);
    onCleanup(() => removeEventListener("beforeunload", ask));
  });
}
