import { createUniqueId, type JSX, onMount, Show } from "solid-js";
import { causeOf } from "../client.ts";
import type { Key } from "../queries.ts";
import { IconButton } from "../ui/controls.tsx";
import { useRenameKey } from "./key-mutations.ts";

/** Enter or the button saves the new name; Escape or the other button does not. A refused name stays in the field. */
export function RenameField(props: { key: Key; onDone: () => void }): JSX.Element {
  const renameKey = useRenameKey();
  const problemId = createUniqueId();
  let input: HTMLInputElement | undefined;
  onMount(() => input?.select());

  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const name = input?.value.trim() ?? "";
    if (name === props.key.name) return props.onDone();
    renameKey.mutate({ key: props.key, name }, { onSuccess: () => props.onDone(), onError: () => input?.focus() });
  };

  return (
    <form class="rename" onSubmit={save}>
      <input
        ref={input}
        value={props.key.name}
        required
        maxlength="240"
        aria-label={`New name of ${props.key.name}`}
        aria-invalid={renameKey.isError}
        aria-describedby={problemId}
        autocomplete="off"
        onKeyDown={(event) => {
          if (event.key === "Escape") props.onDone();
        }}
      />
      <IconButton
        icon="check"
        label="Save the name"
        type="submit"
        title="Save (Enter)"
        disabled={renameKey.isPending}
      />
      <IconButton icon="close" label="Keep the old name" title="Cancel (Escape)" onClick={() => props.onDone()} />
      <p class="form-error" id={problemId} role="alert">
        <Show when={renameKey.error}>{(error) => <>Not renamed: {causeOf(error())}.</>}</Show>
      </p>
    </form>
  );
}
