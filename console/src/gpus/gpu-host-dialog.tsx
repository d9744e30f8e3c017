import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { Button } from "../ui/controls.tsx";
import { CopyLine } from "../ui/copy-button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { findFreeOffset } from "./gpu-hosts.ts";
import type { Gpu } from "./queries.ts";
import { SharedGpusNotice } from "./shared-gpus-notice.tsx";

const keyFile = "/etc/tollgate-gpu.key";

/** How a host sends GPU samples to this server. */
export function GpuHostDialog(props: { gpus: readonly Gpu[]; onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Add a GPU host" onClose={() => props.onClose()}>
      <SharedGpusNotice gpus={props.gpus} />
      <GpuAgentCommands gpus={props.gpus} onNavigate={() => props.onClose()} />
      <div class="dialog-actions">
        <Button tone="primary" onClick={() => props.onClose()}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}

/** @param props.gpus those that report already: a further host needs other ids */
export function GpuAgentCommands(props: { gpus: readonly Gpu[]; onNavigate?: () => void }): JSX.Element {
  const offset = (): number | undefined => findFreeOffset(props.gpus);
  const option = (): string => (offset() === 0 ? "" : ` --gpu-id-offset ${offset() ?? "N"}`);
  return (
    <div class="steps">
      <p>
        On the host with the GPUs, save any active{" "}
        <A href="/keys" onClick={() => props.onNavigate?.()}>
          API key
        </A>{" "}
        in a file that only the agent reads. Paste the key, then press Enter and Ctrl-D:
      </p>
      <CopyLine text={`install -m 600 /dev/stdin ${keyFile}`} what="the key file command" />
      <p>Run the agent. It sends a sample of each GPU about once a second:</p>
      <CopyLine
        text={`tollgate push-gpu --url ${location.origin} --key-file ${keyFile}${option()}`}
        what="the agent command"
      />
      <OffsetNote offset={offset()} />
    </div>
  );
}

/** @param props.offset undefined if no id is free */
function OffsetNote(props: { offset: number | undefined }): JSX.Element {
  return (
    <Show when={props.offset !== 0}>
      <p class="faint">
        {props.offset === undefined
          ? "The ids up to 255 are taken: replace N with an offset whose GPUs no longer report."
          : `The offset ${props.offset} gives this host ids that no other host has sent. A host that reports already keeps its own.`}
      </p>
    </Show>
  );
}
