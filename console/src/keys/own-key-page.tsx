import { createEffect, createSignal, type JSX, onMount, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { compact, count, plural } from "../lib/format.ts";
import { usedLimits } from "./key-limits.ts";
import { type EnteredKey, isRefused, type OwnKey, useOwnKeyQuery } from "./own-key.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { Figure } from "../ui/figure.tsx";
import { Logo } from "../ui/icon.tsx";
import { OwnKeyChart } from "./own-key-chart.tsx";
import { Panel } from "../ui/panel.tsx";
import { UsedLimits } from "./used-limits.tsx";
import "../styles/lazy-pages.css";

/** For the holder of a key: its own limits and usage. The key is kept in memory only, so a reload asks for it again. */
export function OwnKeyPage(): JSX.Element {
  const [entered, setEntered] = createSignal<EnteredKey>();
  const query = useOwnKeyQuery(entered);
  const enter = (key: string): void => void setEntered((before) => ({ key, attempt: (before?.attempt ?? 0) + 1 }));
  createEffect(() => void (document.title = "Your key · Tollgate"));
  return (
    <main class="own-key" id="main">
      <Show
        when={isRefused(query.error) ? undefined : query.data}
        fallback={<KeyForm error={query.error} busy={query.isFetching} onKey={enter} />}
      >
        {(own) => (
          <OwnKeyPanels
            own={own()}
            error={query.error}
            onLeave={() => {
              setEntered(undefined);
              location.reload();
            }}
          />
        )}
      </Show>
    </main>
  );
}

function KeyForm(props: { error: Error | null; busy: boolean; onKey: (key: string) => void }): JSX.Element {
  let input: HTMLInputElement | undefined;
  onMount(() => input?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.onKey(input?.value.trim() ?? "");
  };
  return (
    <form class="panel" onSubmit={submit} aria-labelledby="own-key-title">
      <Logo />
      <h1 id="own-key-title">Your API key</h1>
      <label class="field">
        <span>API key</span>
        <input ref={input} type="password" autocomplete="off" spellcheck={false} required />
      </label>
      <Show when={props.error}>
        {(error) => (
          <p class="form-error" role="alert">
            {causeOf(error())}.
          </p>
        )}
      </Show>
      <button class="button primary" type="submit" disabled={props.busy}>
        Show my limits and usage
      </button>
      <p class="hint">The key stays in this tab’s memory and is not stored.</p>
    </form>
  );
}

function OwnKeyPanels(props: { own: OwnKey; error: Error | null; onLeave: () => void }): JSX.Element {
  return (
    <>
      <header class="page-head">
        <h1>{props.own.name}</h1>
        <div class="actions">
          <button class="button" type="button" onClick={() => props.onLeave()}>
            Use another key
          </button>
        </div>
      </header>
      <Show when={props.error}>
        {(error) => (
          <p class="form-error" role="alert">
            Not refreshed: {causeOf(error())}.
          </p>
        )}
      </Show>
      <dl class="figures">
        <SumFigure own={props.own} label="Requests today" field="request_count" />
        <SumFigure own={props.own} label="Input tokens today" field="input_tokens" />
        <SumFigure own={props.own} label="Output tokens today" field="output_tokens" />
      </dl>
      <Panel title="Limits">
        <div class="panel-body">
          <Show when={usedLimits(props.own).length > 0} fallback={<p>This key has no limits.</p>}>
            <UsedLimits key={props.own} />
          </Show>
          <Facts own={props.own} />
        </div>
      </Panel>
      <Panel title="Tokens" hint="Input and output, by day in Seoul time (KST, UTC+9)">
        <OwnKeyChart own={props.own} />
      </Panel>
    </>
  );
}

const SumFigure = (props: {
  own: OwnKey;
  label: string;
  field: "request_count" | "input_tokens" | "output_tokens";
}): JSX.Element => (
  <Figure
    label={props.label}
    value={compact(props.own.today[props.field])}
    exact={count(props.own.today[props.field])}
    note={`${compact(props.own.this_month[props.field])} this month`}
  />
);

const Facts = (props: { own: OwnKey }): JSX.Element => (
  <>
    <Show when={props.own.expires_at}>{(at) => <p>The key expires on {dateTimeLabel(Date.parse(at()))}.</p>}</Show>
    <Show when={props.own.allowed_models}>{(models) => <p>Allowed models: {models().join(", ")}.</p>}</Show>
    <Show when={props.own.refused_today > 0}>
      <p>{plural(props.own.refused_today, "request")} refused by these limits today.</p>
    </Show>
  </>
);
