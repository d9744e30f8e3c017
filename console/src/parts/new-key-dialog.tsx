import { createSignal, type JSX, onMount, Show } from "solid-js";
import { useCreateKey } from "../data/key-mutations.ts";
import { guardSecretFromUnload, newKeyDialog, setNewKeyDialog } from "../data/new-key.ts";
import type { Key } from "../data/queries.ts";
import { TextField } from "./controls.tsx";
import { CopyLine } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";
import { lazyPart, LoadFailed } from "./lazy.tsx";

const QuickStart = lazyPart(
  async () => (await import("./quick-start.tsx")).QuickStart,
  (state) => (state.hasFailed ? <LoadFailed /> : <p class="hint">Loading…</p>),
);

/** Stands above the pages: neither Back nor a logout in another tab may take the secret away. */
export const NewKeyDialogs = (): JSX.Element => (
  <Show when={newKeyDialog() !== "closed"}>
    <NewKeyDialog />
  </Show>
);

/** A form for the new key, then its secret, which is shown only once. */
function NewKeyDialog(): JSX.Element {
  const [created, setCreated] = createSignal<Key>();
  const close = (): void => void setNewKeyDialog("closed");
  guardSecretFromUnload();
  return (
    <Dialog
      title={created() === undefined ? "New API key" : `Key for “${created()?.name}”`}
      persistent={newKeyDialog() !== "form"}
      onClose={close}
    >
      <Show when={created()} fallback={<NewKeyForm onCreated={setCreated} onCancel={close} />}>
        {(key) => <Secret key={key()} onDone={close} />}
      </Show>
    </Dialog>
  );
}

function NewKeyForm(props: { onCreated: (key: Key) => void; onCancel: () => void }): JSX.Element {
  const createKey = useCreateKey();
  let name: HTMLInputElement | undefined;
  let key: HTMLInputElement | undefined;
  onMount(() => name?.focus());

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const ownKey = key?.value.trim() ?? "";
    setNewKeyDialog("secret");
    createKey.mutate(
      { name: name?.value ?? "", ...(ownKey === "" ? {} : { key: ownKey }) },
      {
        onSuccess: (created) => props.onCreated(created),
        onError: () => {
          setNewKeyDialog("form");
          name?.focus();
        },
      },
    );
  };

  return (
    <form onSubmit={submit}>
      <TextField label="Name" hint="The application or person that uses the key. You can rename it later.">
        {(ids) => (
          <input {...ids} ref={name} required maxlength="240" autocomplete="off" placeholder="e.g. billing service" />
        )}
      </TextField>
      <details>
        <summary>Use an existing key</summary>
        <TextField label="Key" hint="Up to 512 visible ASCII characters. If empty, a random key is generated.">
          {(ids) => <input {...ids} ref={key} class="mono" autocomplete="off" spellcheck={false} maxlength="512" />}
        </TextField>
      </details>
      {/* Not before Escape closes the dialog again, which an error does a moment after it is known. */}
      <Show when={newKeyDialog() === "form" && createKey.error}>
        {(error) => (
          <p class="form-error" role="alert">
            {error().message}
          </p>
        )}
      </Show>
      <div class="dialog-actions">
        <button class="button" type="button" disabled={createKey.isPending} onClick={() => props.onCancel()}>
          Cancel
        </button>
        <button class="button primary" type="submit" disabled={createKey.isPending}>
          Create key
        </button>
      </div>
    </form>
  );
}

function Secret(props: { key: Key; onDone: () => void }): JSX.Element {
  const copied = (): boolean => newKeyDialog() === "saved";
  const setSaved = (): void => void setNewKeyDialog("saved");
  let lead: HTMLParagraphElement | undefined;
  onMount(() => lead?.focus());
  return (
    <>
      <p ref={lead} tabindex="-1" class="lead">
        Copy the key now. Tollgate shows it only once; later it shows only the first and last characters.
      </p>
      <CopyLine text={props.key.key} what="the key" primary onCopied={setSaved} />
      <details>
        <summary>Use it</summary>
        <QuickStart apiKey={props.key.key} onCopied={setSaved} />
      </details>
      <div class="dialog-actions">
        <button class="button" classList={{ primary: copied() }} type="button" onClick={() => props.onDone()}>
          {copied() ? "Done" : "I have saved it"}
        </button>
      </div>
    </>
  );
}
