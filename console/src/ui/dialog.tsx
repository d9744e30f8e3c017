import { createUniqueId, type JSX, onCleanup, onMount, Show } from "solid-js";
import { Button } from "./controls.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  /** Escape and a click outside do not close it: its content cannot be shown again. */
  persistent?: boolean;
  /** At the side of the page, in its full height. */
  drawer?: boolean;
  /** Gets the focus after closing; by default, what had it before. */
  focusAfter?: () => HTMLElement | null;
  children: JSX.Element;
}

/** A native modal dialog, open while its component exists. */
export function Dialog(props: DialogProps): JSX.Element {
  const titleId = createUniqueId();
  let dialog: HTMLDialogElement | undefined;
  // The browser restores the focus when a dialog closes, but here closing removes it first.
  const opener = document.activeElement;
  onMount(() => dialog?.showModal());
  onCleanup(() => {
    const target = props.focusAfter?.() ?? opener;
    if (target instanceof HTMLElement && target.isConnected) queueMicrotask(() => target.focus());
  });

  const blockEscape = (event: KeyboardEvent | Event): void => {
    if (props.persistent && (!(event instanceof KeyboardEvent) || event.key === "Escape")) event.preventDefault();
  };
  const closeFromOutside = (event: MouseEvent): void => {
    // The dialog is also the target on its backdrop, its scrollbar and its blank part.
    if (dialog !== undefined && !props.persistent && event.target === dialog && isOutside(dialog, event))
      dialog.close();
  };

  return (
    <dialog
      ref={dialog}
      classList={{ drawer: props.drawer ?? false }}
      aria-labelledby={titleId}
      // Chromium closes the dialog on the second Escape even if `cancel` is prevented, unless the key press is too.
      onKeyDown={blockEscape}
      onCancel={blockEscape}
      onMouseDown={closeFromOutside}
      onClose={() => props.onClose()}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}

/** The end of a dialog's form: why it was refused, and its two buttons. */
export const FormEnd = (props: {
  error?: Error | false | null | undefined;
  action: string;
  danger?: boolean;
  /** Whether it was sent, and waits. */
  isPending?: boolean;
  /** Whether it lacks something. */
  disabled?: boolean;
  onCancel: () => void;
}): JSX.Element => (
  <>
    <Show when={props.error}>
      {(error) => (
        <p class="form-error" role="alert">
          {error().message}
        </p>
      )}
    </Show>
    <div class="dialog-actions">
      <Button disabled={props.isPending} onClick={() => props.onCancel()}>
        Cancel
      </Button>
      <Button tone={props.danger ? "danger" : "primary"} type="submit" disabled={props.isPending || props.disabled}>
        {props.action}
      </Button>
    </div>
  </>
);

function isOutside(element: Element, { clientX, clientY }: MouseEvent): boolean {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return clientX < left || clientX >= right || clientY < top || clientY >= bottom;
}
