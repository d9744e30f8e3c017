import { createSignal, type JSX, onMount, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import type { Key } from "../queries.ts";
import { TextField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { useRotateKey } from "./key-mutations.ts";
import { KeySecret } from "./key-secret.tsx";
import { closeNewKeyDialog, newKeyDialog, setNewKeyDialog } from "./new-key.ts";

/** Time to bring the new secret to the clients: with 0, all of them fail until they have it. */
const defaultGraceMinutes = 60;

/** Asks for how long the old secret is accepted, then shows the new one. */
export function RotateKeyDialog(props: { key: Key }): JSX.Element {
  const rotateKey = useRotateKey();
  const [rotated, setRotated] = createSignal<Key>();
  const [graceMinutes, setGraceMinutes] = createSignal(defaultGraceMinutes);
  let grace: HTMLInputElement | undefined;
  onMount(() => grace?.focus());

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setNewKeyDialog("secret");
    rotateKey.mutate(
      { key: props.key, graceMinutes: graceMinutes() },
      { onSuccess: setRotated, onError: () => setNewKeyDialog("form") },
    );
  };
  const note = (): string =>
    graceMinutes() === 0
      ? "The old one is no longer accepted."
      : `The old one is accepted for ${plural(graceMinutes(), "more minute")}.`;

  return (
    <Dialog
      title={rotated() === undefined ? `New secret for “${props.key.name}”` : `Key for “${props.key.name}”`}
      persistent={newKeyDialog() !== "form"}
      onClose={closeNewKeyDialog}
    >
      <Show
        when={rotated()}
        fallback={
          <form onSubmit={submit}>
            <p>The key keeps its name, its totals and its limits. Its clients need the new secret.</p>
            <TextField label="Accept the old secret for" hint="Minutes, up to 10,080 (7 days). 0: not at all.">
              {(ids) => (
                <input
                  {...ids}
                  ref={grace}
                  type="number"
                  required
                  min="0"
                  max="10080"
                  step="1"
                  value={defaultGraceMinutes}
                  onInput={(event) => setGraceMinutes(Number(event.currentTarget.value))}
                />
              )}
            </TextField>
            <FormEnd
              error={newKeyDialog() === "form" && rotateKey.error}
              action="Replace the secret"
              isPending={rotateKey.isPending}
              onCancel={closeNewKeyDialog}
            />
          </form>
        }
      >
        {(key) => <KeySecret secret={key().key} note={note()} onDone={closeNewKeyDialog} />}
      </Show>
    </Dialog>
  );
}
