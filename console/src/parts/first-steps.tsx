import { A } from "@solidjs/router";
import type { JSX } from "solid-js";
import { curlCommand } from "../data/curl-command.ts";
import { CopyLine } from "./copy-button.tsx";
import { Icon } from "./icon.tsx";
import { Panel } from "./panel.tsx";

/** Shown by a new installation instead of an empty chart. */
export function FirstSteps(props: { hasKeys: boolean; hasGpus: boolean; separatePorts: boolean }): JSX.Element {
  return (
    <Panel title="First steps">
      <ol class="first-steps">
        <li classList={{ done: props.hasKeys }}>
          <h3>Create an API key</h3>
          <p>Clients need a key to reach the backend through Tollgate.</p>
          <A class="button" classList={{ primary: !props.hasKeys }} href="/keys?new=1">
            <Icon name="plus" />
            New key
          </A>
        </li>
        <li>
          <h3>Send a request</h3>
          <p>
            {props.separatePorts
              ? "Replace ADDRESS with the address of /v1, which has its own port. "
              : "Point a client at this address instead of the backend’s. "}
            After the first response, this page shows its usage.
          </p>
          <CopyLine text={curlCommand("KEY", props.separatePorts)} what="the command" />
        </li>
        <li classList={{ done: props.hasGpus }}>
          <h3>Add a GPU host</h3>
          <p>Shows power, utilisation and the energy per 1,000 output tokens.</p>
          <A class="button" href="/gpus">
            Show how
          </A>
        </li>
      </ol>
    </Panel>
  );
}
