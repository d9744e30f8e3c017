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
          <p>Clients need one to reach the backend through Tollgate.</p>
          <A class="button" classList={{ primary: !props.hasKeys }} href="/keys?new=1">
            <Icon name="plus" />
            New key
          </A>
        </li>
        <li>
          <h3>Send a request</h3>
          <p>
            {props.separatePorts
              ? "ADDRESS is where /v1 answers: the one of PORT, not of this page. "
              : "Point a client at this address in place of the backend’s. "}
            The first answer is counted here.
          </p>
          <CopyLine text={curlCommand("KEY", props.separatePorts)} what="the command" />
        </li>
        <li classList={{ done: props.hasGpus }}>
          <h3>Let a GPU host report</h3>
          <p>Power and utilisation, and what a thousand tokens cost in energy.</p>
          <A class="button" href="/gpus">
            Show how
          </A>
        </li>
      </ol>
    </Panel>
  );
}
