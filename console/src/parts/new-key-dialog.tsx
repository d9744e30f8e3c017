import { createSignal, type JSX, onMount, Show } from "solid-js";
import { curlCommand } from "../data/curl-command.ts";
import { useCreateKey } from "../data/key-mutations.ts";
import { type Key, useOverviewQuery } from "../data/queries.ts";
import { TextField } from "./controls.tsx";
import { CopyLine } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";

/** A form for the new key, then its secret, which is shown only once. */
export function NewKeyDialog(props: { onClose: () => void }): JSX.Element {
  const [created, setCreated] = createSignal<Key>();
  return (
    <Dialog
      title={created() === undefined ? "New API key" : `Key for “${created()?.name}”`}
      persistent={created() !== undefined}
      onClose={() => props.onClose()}
    >
      <Show when={created()} fallback={<NewKeyForm onCreated={setCreated} onCancel={() => props.onClose()} />}>
        {(key) => <Secret key={key()} onDone={() => props.onClose()} />}
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
    createKey.mutate(
      { name: name?.value ?? "", ...(ownKey === "" ? {} : { key: ownKey }) },
      { onSuccess: (created) => props.onCreated(created), onError: () => name?.focus() },
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
      <Show when={createKey.error}>
        {(error) => (
          <p class="form-error" role="alert">
            {error().message}
          </p>
        )}
      </Show>
      <div class="dialog-actions">
        <button class="button" type="button" onClick={() => props.onCancel()}>
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
  const [copied, setCopied] = createSignal(false);
  const overview = useOverviewQuery();
  let lead: HTMLParagraphElement | undefined;
  onMount(() => lead?.focus());
  return (
    <>
      <p ref={lead} tabindex="-1" class="lead">
        Copy the key now. Tollgate shows it only once; later it shows only the first and last characters.
      </p>
      <CopyLine text={props.key.key} what="the key" primary onCopied={() => setCopied(true)} />
      <details>
        <summary>Try it</summary>
        <CopyLine text={curlCommand(props.key.key, overview.data?.separate_ports)} what="the command" />
      </details>
      <div class="dialog-actions">
        <button class="button" classList={{ primary: copied() }} type="button" onClick={() => props.onDone()}>
          {copied() ? "Done" : "Close without copying"}
        </button>
      </div>
    </>
  );
}
