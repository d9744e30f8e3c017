import { createSignal, For, type JSX, Show } from "solid-js";
import { download } from "../lib/download.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Icon } from "../ui/icon.tsx";
import type { QuickStart as Lines } from "./agent-settings.ts";
import { quickStarts } from "./quick-start-lines.ts";
import { useServerAddress } from "./use-server-address.ts";
import "../styles/lazy-pages.css";

interface QuickStartProps {
  /** The lines show KEY without one. */
  apiKey?: string;
  /** After lines were copied that hold the key. Not all do. */
  onKeyCopied?: () => void;
}

/** Lines for the usual clients, with this server's address and model. */
export function QuickStart(props: QuickStartProps): JSX.Element {
  const server = useServerAddress();
  const [chosen, setChosen] = createSignal("curl");
  const all = (): Lines[] =>
    quickStarts({
      origin: server.origin(),
      key: props.apiKey ?? "KEY",
      model: server.model(),
      contextTokens: server.contextTokens(),
      outputTokens: server.outputTokens(),
    });
  const lines = (): Lines | undefined => all().find(({ id }) => id === chosen());
  const notifyOfKey = (): void => {
    if (props.apiKey !== undefined && lines()?.text.includes(props.apiKey)) props.onKeyCopied?.();
  };
  return (
    <div class="quick-start">
      <label class="filter-field">
        <span>Client</span>
        <select onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
          <For each={all().map(({ id, label }) => ({ id, label }))}>
            {({ id, label }) => (
              <option value={id} selected={id === chosen()}>
                {label}
              </option>
            )}
          </For>
        </select>
      </label>
      <Show when={lines()}>
        {(shown) => (
          <>
            <p class="hint">
              {shown().note}
              <Show when={server.hasOwnPort()}> Replace ADDRESS with the address of /v1, which has its own port.</Show>
              <Show when={server.model() === "MODEL"}> Replace MODEL with a model of the backend.</Show>
            </p>
            <Show when={shown().isAgent}>
              <p class="hint">
                Set <code>PROXY_SSE_KEEPALIVE=15</code> on the server: agents give up streams that are silent for
                minutes.
              </p>
            </Show>
            <CodeBlock text={shown().text} what={`the lines for ${shown().label}`} onCopied={notifyOfKey} />
            <Show when={shown().file}>
              {(file) => (
                <button
                  class="button"
                  type="button"
                  onClick={() => {
                    download(file(), `${shown().text}\n`, "text/plain;charset=utf-8");
                    notifyOfKey();
                  }}
                >
                  <Icon name="download" />
                  Download settings file
                </button>
              )}
            </Show>
          </>
        )}
      </Show>
    </div>
  );
}
