import { createSignal, For, type JSX, Show, untrack } from "solid-js";
import { causeOf } from "../client.ts";
import { download } from "../lib/download.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Button, LabelledInput, LabelledSelect, SegmentedControl } from "../ui/controls.tsx";
import { clients, handOverText } from "./agent-settings.ts";
import { playgroundKey, setPlaygroundKey } from "./playground-key.ts";
import type { Client, ClientValues } from "./quick-start-lines.ts";
import { type ServerAddress, useOwnAddress, useServerAddress } from "./use-server-address.ts";
import "../styles/lazy-pages.css";

/** What the lines of clients say, for a model that can be picked. @param key empty: the lines show KEY */
function createClientChoice(server: ServerAddress, key: () => string) {
  const [picked, setPicked] = createSignal<string>();
  const model = (): string => server.models().find((name) => name === picked()) ?? server.model();
  /** Nothing while there is one model. */
  const ModelSelect = (): JSX.Element => (
    <Show when={server.models().length > 1}>
      <LabelledSelect
        label="Model"
        options={server.models().map((name) => ({ value: name, label: name }))}
        value={model()}
        onChange={setPicked}
      />
    </Show>
  );
  return {
    values: (): ClientValues => ({
      origin: server.origin(),
      key: key() || "KEY",
      model: model(),
      ...server.capsOf(model()),
    }),
    ModelSelect,
  };
}

/** One text with all that a colleague needs to use a new key, for one copy. */
export function HandOver(props: { apiKey: string; onCopied: () => void }): JSX.Element {
  const key = (): string => props.apiKey;
  const server = useServerAddress(key);
  const { values, ModelSelect } = createClientChoice(server, key);
  return (
    <Show when={!server.isLoading()} fallback={<p class="hint">Loading…</p>}>
      <div class="filter-fields">
        <ModelSelect />
      </div>
      <CodeBlock
        text={handOverText(values(), `${location.origin}/me`)}
        what="all that its user needs"
        onCopied={props.onCopied}
      />
      <p class="hint">
        <Blanks text={handOverText(values(), "")} /> Help has the lines of other clients.
      </p>
    </Show>
  );
}

/**
 * The lines of each client for this server's address and a model with its caps.
 * @param props.holderKey of who has no session; without, the page asks for a key
 */
export function QuickStart(props: { holderKey?: string }): JSX.Element {
  const key = (): string => props.holderKey ?? playgroundKey().trim();
  const isHolder = untrack(() => props.holderKey !== undefined);
  const server = isHolder ? useOwnAddress(key) : useServerAddress(key);
  const { values, ModelSelect } = createClientChoice(server, key);
  // They are the same for all values.
  const options = untrack(() => clients(values()).map(({ id, label }) => ({ value: id, label })));
  const [chosen, setChosen] = createSignal("curl");
  const shown = (): Client | undefined => clients(values()).find(({ id }) => id === chosen());
  return (
    <div class="quick-start">
      <div class="filter-fields">
        <Show when={!isHolder && !server.hasOwnPort()}>
          <LabelledInput
            label="API key, for its models and their contexts"
            type="password"
            value={playgroundKey()}
            onChange={({ currentTarget }) => setPlaygroundKey(currentTarget.value)}
          />
        </Show>
        <ModelSelect />
      </div>
      <Show when={isHolder && server.models().length > 0}>
        <p>Models: {server.models().join(", ")}.</p>
      </Show>
      <Show when={server.keyError()}>
        {(error) => (
          <p class="form-error" role="alert">
            {causeOf(error())}.
          </p>
        )}
      </Show>
      <SegmentedControl label="Client" options={options} value={chosen()} onChange={setChosen} />
      <Show when={shown()}>{(client) => <Row client={client()} />}</Show>
    </div>
  );
}

/** The words that the text has for what only its reader knows. */
const blanks = [
  ["ADDRESS", "the address of /v1, which has its own port"],
  ["MODEL", "a model of the backend"],
  ["CONTEXT", "the longest context of the model, in tokens: GET /v1/models has it"],
] as const;

const Blanks = (props: { text: string }): JSX.Element => (
  <For each={blanks.filter(([word]) => new RegExp(`\\b${word}\\b`).test(props.text))}>
    {([word, what]) => ` Replace ${word} with ${what}.`}
  </For>
);

const Row = (props: { client: Client }): JSX.Element => (
  <>
    <p class="hint">
      {props.client.note}
      <Blanks text={props.client.note + props.client.text} />
    </p>
    <Show when={props.client.isAgent}>
      <p class="hint">
        Set <code>PROXY_SSE_KEEPALIVE=15</code> on the server: agents give up streams that are silent for minutes.
      </p>
    </Show>
    <CodeBlock text={props.client.text} what={`the lines for ${props.client.label}`} />
    <Show when={props.client.file}>
      {(file) => (
        <Button icon="download" onClick={() => download(file(), `${props.client.text}\n`, "text/plain;charset=utf-8")}>
          Download settings file
        </Button>
      )}
    </Show>
  </>
);
