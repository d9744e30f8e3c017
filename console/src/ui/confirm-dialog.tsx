import type { JSX } from "solid-js";
import { Button } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";

interface ConfirmDialogProps {
  title: string;
  /** What the button says that does it. */
  action: string;
  onConfirm: () => void;
  /** What the button says that does nothing. */
  cancel?: string;
  onClose: () => void;
  /** Buttons of other ways, between the two. */
  others?: JSX.Element;
  /** See `Dialog`. */
  focusAfter?: () => HTMLElement | null;
  /** What it means. */
  children: JSX.Element;
}

/** Asks before what cannot be undone. Cancel has the focus, so that Enter does nothing. */
export function ConfirmDialog(props: ConfirmDialogProps): JSX.Element {
  const confirm = (): void => {
    props.onConfirm();
    props.onClose();
  };
  return (
    <Dialog title={props.title} focusAfter={() => props.focusAfter?.() ?? null} onClose={() => props.onClose()}>
      {props.children}
      <div class="dialog-actions">
        <Button autofocus onClick={() => props.onClose()}>
          {props.cancel ?? "Cancel"}
        </Button>
        {props.others}
        <Button tone="danger" onClick={confirm}>
          {props.action}
        </Button>
      </div>
    </Dialog>
  );
}
