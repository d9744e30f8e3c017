import { createEffect, createSignal, onCleanup } from "solid-js";
import type { Key } from "../queries.ts";

/**
 * The dialog that shows secrets. `secret`: it holds, or is about to, a secret that cannot be shown again; then only the user
 * closes it, not a change of page. `saved`: the secret was copied or downloaded.
 */
type NewKeyDialogState = "closed" | "form" | "secret" | "saved";

/** Where its secrets come from. */
type SecretSource = { kind: "new" } | { kind: "import" } | { kind: "rotation"; key: Key };

const [newKeyDialog, setNewKeyDialog] = createSignal<NewKeyDialogState>("closed");
const [secretSource, setSecretSource] = createSignal<SecretSource>({ kind: "new" });
/** The id of the key that was created last while the page of keys is open: its row is lit, and first. */
const [createdKey, setCreatedKey] = createSignal<number>();
export { createdKey, newKeyDialog, secretSource, setCreatedKey, setNewKeyDialog };

function openForm(source: SecretSource): void {
  if (newKeyDialog() !== "closed") return;
  setSecretSource(source);
  setNewKeyDialog("form");
}

export const openNewKeyForm = (): void => openForm({ kind: "new" });
export const openImportForm = (): void => openForm({ kind: "import" });
export const openRotationForm = (key: Key): void => openForm({ kind: "rotation", key });

export const closeNewKeyDialog = (): void => void setNewKeyDialog("closed");

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
