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
        On the host with the GPUs, run Tollgate’s GPU agent. It posts a sample of each GPU about once a second. Replace{" "}
        <code>KEY</code> with any active{" "}
        <A href="/keys" onClick={() => props.onNavigate?.()}>
          API key
        </A>
        .
      </p>
      <CopyLine text={`tollgate push-gpu --url ${location.origin} --key KEY`} what="the agent command" />
      <p>Instead of the program, you can run a shell script that needs only nvidia-smi, awk and curl:</p>
      <CopyLine text="tollgate push-gpu --script > push-gpu.sh" what="the script command" />
    </div>
  );
}
