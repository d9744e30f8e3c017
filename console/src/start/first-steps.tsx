import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { useStatesQuery } from "../queries.ts";
import { CopyLine } from "../ui/copy-button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Panel } from "../ui/panel.tsx";
import type { Overview } from "./queries.ts";

/** Shown by a new installation instead of an empty chart. */
export function FirstSteps(props: { overview: Overview }): JSX.Element {
  const hasKeys = (): boolean => props.overview.active_keys > 0;
  return (
    <Panel title="First steps">
      <ol class="first-steps">
        <BackendStep url={props.overview.upstream_url} />
        <li classList={{ done: hasKeys() }}>
          <h3>Create an API key</h3>
          <p>Clients need a key to reach the backend through Tollgate.</p>
          <A class="button" classList={{ primary: !hasKeys() }} href="/keys?new=1">
            <Icon name="plus" />
            New key
          </A>
        </li>
        <RequestStep separatePorts={props.overview.separate_ports} />
        <li>
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

function BackendStep(props: { url: string }): JSX.Element {
  const states = useStatesQuery();
  const problem = () => states.data?.states.find(({ kind }) => kind === "backend_out");
  return (
    <li classList={{ done: states.data !== undefined && problem() === undefined }}>
      <h3>Connect the backend</h3>
      <Show
        when={problem() === undefined}
        fallback={
          <>
            <p>
              No usable response from <code>{props.url}</code>: {problem()?.what}.
            </p>
            <p>
              Start the language-model server, or set <code>PROXY_UPSTREAM_URL</code> to its address and restart
              Tollgate. With <code>MODELS_FILE</code>, its address stands in that file.
            </p>
          </>
        }
      >
        <p>
          <code>{props.url}</code> responds.
        </p>
      </Show>
    </li>
  );
}

const RequestStep = (props: { separatePorts: boolean }): JSX.Element => (
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
);

/** Lists the models. If `/v1` has its own port, only the operator knows the address that clients use. */
function curlCommand(key: string, separatePorts: boolean | undefined): string {
  const origin = separatePorts === true ? "http://ADDRESS" : location.origin;
  return `curl ${origin}/v1/models -H "Authorization: Bearer ${key}"`;
}
