import { A } from "@solidjs/router";
import { createSignal, type JSX, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { count, milliseconds, threeDigits } from "../lib/format.ts";
import { requestsHref } from "../lib/requests-href.ts";
import { Button, LabelledInput } from "../ui/controls.tsx";
import { Figure } from "../ui/figure.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { Edits } from "./edits.tsx";
import { playgroundKey, setPlaygroundKey } from "./playground-key.ts";
import { useExplain } from "./queries.ts";
import { playgroundPath, type PlaygroundRun, usePlayground } from "./use-playground.ts";
import { useServerAddress } from "./use-server-address.ts";
import "../styles/lazy-pages.css";

const maxTokens = 512;

/** One streamed request, sent by this page, with a key that is not stored. */
export function PlaygroundPage(): JSX.Element {
  const server = useServerAddress();
  return (
    <Page title="Playground" help="api" sources={[]}>
      <SectionTabs section="help" label="Help" />
      <Show when={!server.hasOwnPort()} fallback={<OwnPort />}>
        <Playground model={server.model()} />
      </Show>
    </Page>
  );
}

const OwnPort = (): JSX.Element => (
  <section class="panel" aria-label="Playground">
    <EmptyState title="/v1 has its own port">
      <p>This page may send requests only to its own address. Use the lines of the quick start instead.</p>
      <A class="button" href="/help">
        Quick start
      </A>
    </EmptyState>
  </section>
);

function Playground(props: { model: string }): JSX.Element {
  const playground = usePlayground();
  const explain = useExplain();
  const send = (body: string): void => {
    explain.mutate({ path: playgroundPath, body });
    void playground.send(playgroundKey().trim(), body);
  };
  return (
    <>
      <Panel title="Request" hint={`POST ${playgroundPath}, at most ${maxTokens} tokens`}>
        <RequestForm {...props} isRunning={playground.isRunning()} onSend={send} onStop={playground.stop} />
      </Panel>
      <Show when={playground.run()}>
        {(run) => (
          <Panel title="Response" hint={stateOf(run())}>
            <RunResult run={run()} />
            <h3 class="chart-title">What was changed</h3>
            <div class="panel-body">
              <Show when={explain.data} fallback={<p class="hint">{explain.error && causeOf(explain.error)}</p>}>
                {(explanation) => <Edits explanation={explanation()} />}
              </Show>
            </div>
          </Panel>
        )}
      </Show>
    </>
  );
}

function stateOf({ status, problem }: PlaygroundRun): string {
  if (status !== undefined) return `Status ${status}`;
  return problem === undefined ? "Waiting…" : "No response";
}

interface RequestFormProps {
  model: string;
  isRunning: boolean;
  onSend: (body: string) => void;
  onStop: () => void;
}

function RequestForm(props: RequestFormProps): JSX.Element {
  const [model, setModel] = createSignal<string>();
  let message: HTMLTextAreaElement | undefined;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.onSend(chatBody(model() ?? props.model, message?.value ?? ""));
  };
  return (
    <form class="panel-body" onSubmit={submit}>
      <div class="filter-fields">
        <LabelledInput label="API key" type="password" required value={playgroundKey()} onText={setPlaygroundKey} />
        <LabelledInput label="Model" required spellcheck={false} value={model() ?? props.model} onText={setModel} />
      </div>
      <p class="hint">The key stays in this page’s memory, and is gone when you close or reload it.</p>
      <label class="filter-field">
        <span>Message</span>
        <textarea ref={message} class="message" rows="3" required>
          Hello! What can you do?
        </textarea>
      </label>
      <div class="actions">
        <Button tone="primary" type="submit" disabled={props.isRunning}>
          Send
        </Button>
        <Button disabled={!props.isRunning} onClick={() => props.onStop()}>
          Stop
        </Button>
      </div>
    </form>
  );
}

const chatBody = (model: string, content: string): string =>
  JSON.stringify({
    model,
    max_tokens: maxTokens,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: "user", content }],
  });

function RunResult(props: { run: PlaygroundRun }): JSX.Element {
  const speed = (): string | undefined => {
    const { progress, firstByteMs, durationMs } = props.run;
    if (progress.outputTokens === undefined || firstByteMs === undefined || durationMs === undefined) return undefined;
    const ms = durationMs - firstByteMs;
    return ms < 1 || progress.outputTokens < 2 ? undefined : threeDigits(((progress.outputTokens - 1) * 1000) / ms);
  };
  const tokens = (value: number | undefined): string => (value === undefined ? "–" : count(value));
  const time = (ms: number | undefined): string => (ms === undefined ? "–" : milliseconds(ms));
  return (
    <>
      <dl class="figures inset">
        <Figure label="First byte" value={time(props.run.firstByteMs)} note="As this browser saw it" />
        <Figure label="Duration" value={time(props.run.durationMs)} />
        <Figure label="Tokens per second" value={speed() ?? "–"} note="After the first byte" />
        <Figure
          label="Output tokens"
          value={tokens(props.run.progress.outputTokens)}
          note={`${tokens(props.run.progress.inputTokens)} input`}
        />
      </dl>
      <div class="panel-body">
        <div role="alert">
          <Show when={props.run.problem}>{(problem) => <p class="form-error">{problem().replace(/\.$/, "")}.</p>}</Show>
        </div>
        <Show when={props.run.progress.reasoning}>
          {(reasoning) => (
            <details>
              <summary>Reasoning</summary>
              <p class="response-text">{reasoning()}</p>
            </details>
          )}
        </Show>
        <p class="response-text">{props.run.progress.text}</p>
        <Show when={props.run.durationMs !== undefined && props.run.requestId}>
          {(id) => (
            <p>
              <A href={requestsHref({ open: id() })}>See it in the request log</A>
            </p>
          )}
        </Show>
      </div>
    </>
  );
}
