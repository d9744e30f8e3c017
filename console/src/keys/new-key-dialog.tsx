import { createSignal, type JSX, Match, onMount, Show, Switch } from "solid-js";
import type { Key } from "../queries.ts";
import { InputField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { FailedDialog, lazyPart, LoadFailed } from "../ui/lazy.tsx";
import { type KeyFields, useCreateKey } from "./key-mutations.ts";
import { KeySecret } from "./key-secret.tsx";
import {
  closeNewKeyDialog,
  guardSecretFromUnload,
  newKeyDialog,
  secretSource,
  setCreatedKey,
  setNewKeyDialog,
} from "./new-key.ts";

// Less often opened, so not part of the first view's script.
const ImportKeysDialog = lazyPart(
  async () => (await import("./import-dialog.tsx")).ImportKeysDialog,
  (state) => <FailedDialog {...state} title="API keys" onClose={closeNewKeyDialog} />,
);
const RotateKeyDialog = lazyPart(
  async () => (await import("./rotate-key-dialog.tsx")).RotateKeyDialog,
  (state) => <FailedDialog {...state} title="API keys" onClose={closeNewKeyDialog} />,
);

const NewKeyFields = lazyPart(
  async () => (await import("./key-policy.tsx")).NewKeyFields,
  (state) => (state.hasFailed ? <LoadFailed /> : undefined),
);
const PolicyNote = lazyPart(
  async () => (await import("./key-policy.tsx")).PolicyNote,
  () => undefined,
);

/** Stands above the pages: neither Back nor a logout in another tab may take a secret away. */
export const NewKeyDialogs = (): JSX.Element => (
  <Show when={newKeyDialog() !== "closed"}>
    <SecretDialog />
  </Show>
);

function SecretDialog(): JSX.Element {
  const rotated = (): Key | undefined => {
    const source = secretSource();
    return source.kind === "rotation" ? source.key : undefined;
  };
  guardSecretFromUnload();
  return (
    <Switch fallback={<NewKeyDialog />}>
      <Match when={secretSource().kind === "import"}>
        <ImportKeysDialog />
      </Match>
      <Match when={rotated()}>{(key) => <RotateKeyDialog key={key()} />}</Match>
    </Switch>
  );
}

/** A form for the new key, then its secret. */
function NewKeyDialog(): JSX.Element {
  const [created, setCreated] = createSignal<Key>();
  return (
    <Dialog
      title={created() === undefined ? "New API key" : `Key for “${created()?.name}”`}
      persistent={newKeyDialog() !== "form"}
      onClose={closeNewKeyDialog}
    >
      <Show when={created()} fallback={<NewKeyForm onCreated={setCreated} onCancel={closeNewKeyDialog} />}>
        {(key) => <KeySecret secret={key().key} />}
      </Show>
    </Dialog>
  );
}

function NewKeyForm(props: { onCreated: (key: Key) => void; onCancel: () => void }): JSX.Element {
  const createKey = useCreateKey();
  const [fields, setFields] = createSignal<KeyFields>({});
  let name: HTMLInputElement | undefined;
  let key: HTMLInputElement | undefined;
  onMount(() => name?.focus());

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const ownKey = key?.value.trim() ?? "";
    setNewKeyDialog("secret");
    createKey.mutate(
      { ...fields(), name: name?.value ?? "", ...(ownKey === "" ? {} : { key: ownKey }) },
      {
        onSuccess: (created) => {
          setCreatedKey(created.id);
          props.onCreated(created);
        },
        onError: () => {
          setNewKeyDialog("form");
          name?.focus();
        },
      },
    );
  };

  return (
    <form onSubmit={submit}>
      <InputField
        label="Name"
        hint="The application or person that uses the key. You can rename it later."
        ref={name}
        required
        maxlength="240"
        placeholder="e.g. billing service"
      />
      <details>
        <summary>Use an existing key</summary>
        <InputField
          label="Key"
          hint="Up to 512 visible ASCII characters. If empty, a random key is generated."
          ref={key}
          class="mono"
          spellcheck={false}
          maxlength="512"
        />
      </details>
      <details class="more-fields">
        <summary>Limits and details</summary>
        <NewKeyFields onChange={(changed) => setFields((before) => ({ ...before, ...changed }))} />
      </details>
      <PolicyNote />
      {/* Not before Escape closes the dialog again, which an error does a moment after it is known. */}
      <FormEnd
        error={newKeyDialog() === "form" && createKey.error}
        action="Create key"
        isPending={createKey.isPending}
        onCancel={props.onCancel}
      />
    </form>
  );
}
