import { createEffect, createSignal, onCleanup } from "solid-js";

/**
 * The dialog for a new key. `secret`: it holds, or is about to, a secret that cannot be shown again; then only the user
 * closes it, not a change of page. `saved`: the secret was copied.
 */
type NewKeyDialogState = "closed" | "form" | "secret" | "saved";

const [newKeyDialog, setNewKeyDialog] = createSignal<NewKeyDialogState>("closed");
export { newKeyDialog, setNewKeyDialog };

export const openNewKeyForm = (): void => void setNewKeyDialog((state) => (state === "closed" ? "form" : state));

export const closeNewKeyDialogUnlessSecret = (): void =>
  void setNewKeyDialog((state) => (state === "secret" ? state : "closed"));

/** Has the browser ask before the page is left, while the dialog holds a secret. */
export function guardSecretFromUnload(): void {
  const ask = (event: BeforeUnloadEvent): void => event.preventDefault();
  createEffect(() => {
    if (newKeyDialog() !== "secret") return;
    addEventListener("beforeunload", ask);
    onCleanup(() => removeEventListener("beforeunload", ask));
  });
}
