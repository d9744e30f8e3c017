import { A } from "@solidjs/router";
import type { JSX } from "solid-js";
import { CopyLine } from "./copy-button.tsx";
import { Dialog } from "./dialog.tsx";

/** Two ways to send GPU samples to this server. */
export function GpuHostDialog(props: { onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Add a GPU host" onClose={() => props.onClose()}>
      <GpuAgentCommands onNavigate={() => props.onClose()} />
      <div class="dialog-actions">
        <button class="button primary" type="button" onClick={() => props.onClose()}>
          Done
        </button>
      </div>
    </Dialog>
  );
}

export function GpuAgentCommands(props: { onNavigate?: () => void }): JSX.Element {
  return (
    <div class="steps">
      <p>
        On the host that holds the GPUs, run Tollgate as a pusher. It posts a sample of each GPU about once a second,
        with any active{" "}
        <A href="/keys" onClick={() => props.onNavigate?.()}>
          API key
        </A>{" "}
        in place of <code>KEY</code>.
      </p>
      <CopyLine text={`tollgate push-gpu --url ${location.origin} --key KEY`} what="the pusher command" />
      <p>
        Where the program itself is not wanted, a shell script that needs only nvidia-smi, awk and curl does the same:
      </p>
      <CopyLine text="tollgate push-gpu --script > push-gpu.sh" what="the script command" />
    </div>
  );
}
