import { createSignal, type JSX, Show } from "solid-js";
import type { Key } from "../queries.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { useRotateKey } from "./key-mutations.ts";
import { KeySecret } from "./key-secret.tsx";
import { closeNewKeyDialog, newKeyDialog, setNewKeyDialog } from "./new-key.ts";

/** Until then clients have to get the new secret. */
const plannedGraceMinutes = 60;

/** Asks why: a secret that leaked ends now, one that is replaced as planned an hour later. Then shows the new one. */
export function RotateKeyDialog(props: { key: Key }): JSX.Element {
  const rotateKey = useRotateKey();
  const [rotated, setRotated] = createSignal<Key>();
  const [leaked, setLeaked] = createSignal(false);
  const rotate = (hasLeaked: boolean): void => {
    setLeaked(hasLeaked);
    setNewKeyDialog("secret");
    rotateKey.mutate(
      { key: props.key, graceMinutes: hasLeaked ? 0 : plannedGraceMinutes },
      { onSuccess: setRotated, onError: () => setNewKeyDialog("form") },
    );
  };
  const note = (): string =>
    leaked() ? "The old one is no longer accepted." : "The old one is accepted for one more hour.";

  return (
    <Dialog
      title={rotated() === undefined ? `New secret for “${props.key.name}”` : `Key for “${props.key.name}”`}
      persistent={newKeyDialog() !== "form"}
      onClose={closeNewKeyDialog}
    >
      <Show
        when={rotated()}
        fallback={
          <>
            <p>
              The key keeps its name, its totals and its limits. Its clients need the new secret: the old one ends at
              once if it leaked, or in an hour.
            </p>
            <Show when={newKeyDialog() === "form" && rotateKey.error}>
              {(error) => (
                <p class="form-error" role="alert">
                  {error().message}
                </p>
              )}
            </Show>
            <div class="dialog-actions">
              <Button autofocus disabled={rotateKey.isPending} onClick={closeNewKeyDialog}>
                Cancel
              </Button>
              <Button disabled={rotateKey.isPending} onClick={() => rotate(false)}>
                It is planned
              </Button>
              <Button tone="danger" disabled={rotateKey.isPending} onClick={() => rotate(true)}>
                It leaked
              </Button>
            </div>
          </>
        }
      >
        {(key) => <KeySecret secret={key().key} note={note()} />}
      </Show>
    </Dialog>
  );
}
