import { createSignal, type JSX, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Button, LabelledSelect } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { Edits } from "./edits.tsx";
import { useExplain } from "./queries.ts";
import "../styles/lazy-pages.css";

const paths = ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions", "/v1/embeddings"].map(
  (value) => ({ value, label: value }),
);

const example = JSON.stringify(
  { model: "claude-sonnet", max_tokens: 1024, stream: true, messages: [{ role: "user", content: "Hello!" }] },
  null,
  2,
);

/** With the versions whose requests the rules were made from. */
const clients = [
  { value: "", label: "Any other" },
  { value: "claude-cli/2.1.330", label: "Claude Code" },
  { value: "codex_exec/0.169.0", label: "Codex" },
  { value: "opencode/1.18.33", label: "opencode" },
];

/** Shows the body that Tollgate would send for a request. Nothing is sent to the backend. */
export function ExplainPage(): JSX.Element {
  const explain = useExplain();
  const [path, setPath] = createSignal("/v1/chat/completions");
  const [client, setClient] = createSignal("");
  let body: HTMLTextAreaElement | undefined;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    explain.mutate({ path: path(), body: body?.value ?? "", user_agent: client() });
  };
  return (
    <Page title="Explain a request" help="models-and-backends#rewrites" sources={[]}>
      <SectionTabs section="help" label="Help" />
      <Panel title="Request" hint="The real rewriter runs; nothing is sent to the backend or stored">
        <form class="panel-body" onSubmit={submit}>
          <LabelledSelect label="Path" options={paths} value={path()} onChange={setPath} />
          <LabelledSelect label="Client" options={clients} value={client()} onChange={setClient} />
          <label class="filter-field">
            <span>Body</span>
            <textarea ref={body} class="message mono" rows="12" spellcheck={false} required>
              {example}
            </textarea>
          </label>
          <Show when={explain.error}>
            {(error) => (
              <p class="form-error" role="alert">
                {causeOf(error())}.
              </p>
            )}
          </Show>
          <div class="actions">
            <Button tone="primary" type="submit" disabled={explain.isPending}>
              Explain
            </Button>
          </div>
        </form>
      </Panel>
      <Show when={explain.data}>
        {(explanation) => (
          <Panel title="What would be changed" hint={explanation().stream ? "A streamed request" : undefined}>
            <div class="panel-body" role="status">
              <Edits explanation={explanation()} />
            </div>
            <Show when={explanation().refused === null}>
              <h3 class="chart-title">The body that would be sent</h3>
              <div class="panel-body">
                <CodeBlock text={explanation().body} what="the body" />
              </div>
            </Show>
          </Panel>
        )}
      </Show>
    </Page>
  );
}
