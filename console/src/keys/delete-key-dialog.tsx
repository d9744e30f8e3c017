import { createSignal, type JSX, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import type { Key } from "../queries.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Button, Choice } from "../ui/controls.tsx";
import { useDeleteKey, useSwitchKey } from "./key-mutations.ts";

/** Names what is lost and offers to deactivate instead. */
export function DeleteKeyDialog(props: { key: Key; onDelete?: () => void; onClose: () => void }): JSX.Element {
  const switchKey = useSwitchKey();
  const deleteKey = useDeleteKey();
  const row = document.activeElement?.closest("tr");
  const [deletes, setDeletes] = createSignal(false);
  const [endRunning, setEndRunning] = createSignal(false);
  const remove = (): void => {
    setDeletes(true);
    deleteKey.mutate({ key: props.key, endRunning: endRunning() });
    props.onDelete?.();
  };
  const switchOff = (): void => {
    switchKey.mutate({ key: props.key, isActive: false, endRunning: endRunning() });
    props.onClose();
  };
  const tokens = (): number => props.key.total_input_tokens + props.key.total_output_tokens;
  return (
    <ConfirmDialog
      title={`Delete “${props.key.name}”?`}
      action="Delete key"
      onConfirm={remove}
      others={
        <Show when={props.key.is_active}>
          <Button onClick={switchOff}>Switch off instead</Button>
        </Show>
      }
      focusAfter={() => (deletes() ? nextMenu(row) : null)}
      onClose={() => props.onClose()}
    >
      <p>
        From the next request on, clients that use this key are refused. The key cannot be restored. Its totals (
        {plural(props.key.total_request_count, "request")}, {plural(tokens(), "token")}) are subtracted from the sums
        over all keys; its rows in the usage history stay.
      </p>
      <Show when={props.key.is_active}>
        <p>Switching the key off also refuses its clients, but keeps its totals.</p>
      </Show>
      <Choice label="Also end its running responses" value={endRunning()} onChange={setEndRunning} />
    </ConfirmDialog>
  );
}

/** In the row after the deleted one, which leaves the table; in the last row's place, the one before. */
function nextMenu(row: Element | null | undefined): HTMLElement | null {
  const next = row?.nextElementSibling ?? row?.previousElementSibling;
  return next?.querySelector<HTMLElement>(".row-actions button") ?? document.querySelector<HTMLElement>("#main");
}
