import { createSignal, type JSX, onMount, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import type { Key } from "../queries.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { KeyFieldInputs } from "./key-fields.tsx";
import { type KeyFields, useChangeKey } from "./key-mutations.ts";
import { FirstUser, OpenWebUiLines } from "./subject-dialog.tsx";
import { UsedLimits } from "./used-limits.tsx";

/** What a key may take, what it is for, and how much of its limits is used. */
export function KeyLimitsDialog(props: { key: Key; onClose: () => void }): JSX.Element {
  const changeKey = useChangeKey();
  const [fields, setFields] = createSignal<KeyFields>({});
  /** Of users, after it was saved. */
  const [secret, setSecret] = createSignal<string>();
  let form: HTMLFormElement | undefined;
  onMount(() => form?.querySelector("input")?.focus());
  const set = (changed: KeyFields): void => void setFields((before) => ({ ...before, ...changed }));

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (Object.keys(fields()).length === 0) return props.onClose();
    const onSuccess = (): void => {
      const made = fields().users_secret ?? undefined;
      if (made === undefined) props.onClose();
      else setSecret(made);
    };
    changeKey.mutate({ key: props.key, fields: fields() }, { onSuccess });
  };

  return (
    <Dialog
      title={`Limits and details of “${props.key.name}”`}
      persistent={secret() !== undefined}
      onClose={() => props.onClose()}
    >
      <Show
        when={secret()}
        fallback={
          <>
            <UsedLimits key={props.key} />
            <Show when={props.key.refused_today > 0}>
              <p>{plural(props.key.refused_today, "request")} refused by these limits today.</p>
            </Show>
            <form ref={form} onSubmit={submit}>
              <KeyFieldInputs key={props.key} onChange={set} />
              <FormEnd error={changeKey.error} action="Save" isPending={changeKey.isPending} onCancel={props.onClose} />
            </form>
          </>
        }
      >
        {(saved) => (
          <>
            <OpenWebUiLines secret={saved()} />
            <FirstUser keyId={props.key.id} />
            <div class="dialog-actions">
              <Button tone="primary" onClick={() => props.onClose()}>
                Done
              </Button>
            </div>
          </>
        )}
      </Show>
    </Dialog>
  );
}
