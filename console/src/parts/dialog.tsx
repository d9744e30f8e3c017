import { type JSX, onCleanup, onMount } from "solid-js";

interface DialogProps {
  title: string;
  onClose: () => void;
  /** Escape and a click outside do nothing: what it holds is shown once. */
  persistent?: boolean;
  children: JSX.Element;
}

/** A native modal dialog that lives as long as its component: the browser keeps the focus inside. */
export function Dialog(props: DialogProps): JSX.Element {
  let dialog: HTMLDialogElement | undefined;
  // The browser gives the focus back when a dialog closes, not when it is removed, and here closing removes it.
  const opener = document.activeElement;
  onMount(() => dialog?.showModal());
  onCleanup(() => {
    if (opener instanceof HTMLElement && opener.isConnected) queueMicrotask(() => opener.focus());
  });

  const refuseEscape = (event: KeyboardEvent | Event): void => {
    if (props.persistent && (!(event instanceof KeyboardEvent) || event.key === "Escape")) event.preventDefault();
  };
  const closeFromOutside = (event: MouseEvent): void => {
    if (event.target === dialog && !props.persistent) dialog?.close();
  };

  return (
    <dialog
      ref={dialog}
      aria-labelledby="dialog-title"
      // Chromium closes on the second Escape whatever `cancel` says, unless the key itself is refused.
      onKeyDown={refuseEscape}
      onCancel={refuseEscape}
      onMouseDown={closeFromOutside}
      onClose={() => props.onClose()}
    >
      <div class="dialog-body">
        <h2 id="dialog-title">{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}
