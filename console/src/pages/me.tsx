import { createEffect, createSignal, For, type JSX, onMount, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { count, plural } from "../data/format.ts";
import { usedLimits } from "../data/key-limits.ts";
import { type OwnKey, useOwnKeyQuery } from "../data/own-key.ts";
import { dateTimeLabel } from "../data/time-labels.ts";
import { Logo } from "../parts/icon.tsx";
import { Panel } from "../parts/panel.tsx";
import { UsedLimits } from "../parts/used-limits.tsx";

/** For the holder of a key: its own limits and usage. The key is kept in memory only, so a reload asks for it again. */
export function OwnKeyPage(): JSX.Element {
  const [key, setKey] = createSignal<string>();
  const query = useOwnKeyQuery(key);
  createEffect(() => void (document.title = "Your key · Tollgate"));
  return (
    <main class="own-key" id="main">
      <Show when={query.data} fallback={<KeyForm error={query.error} busy={query.isFetching} onKey={setKey} />}>
        {(own) => (
          <OwnKeyPanels
            own={own()}
            onLeave={() => {
              setKey(undefined);
              location.reload();
            }}
          />
        )}
      </Show>
    </main>
  );
}

function KeyForm(props: { error: Error | null; busy: boolean; onKey: (key: string | undefined) => void }): JSX.Element {
  let input: HTMLInputElement | undefined;
  onMount(() => input?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    // A second try with the same key is a try too.
    props.onKey(undefined);
    props.onKey(input?.value.trim());
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

function OwnKeyPanels(props: { own: OwnKey; onLeave: () => void }): JSX.Element {
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
      <Panel title="Limits">
        <div class="panel-body">
          <Show when={usedLimits(props.own).length > 0} fallback={<p>This key has no limits.</p>}>
            <UsedLimits key={props.own} />
          </Show>
          <Facts own={props.own} />
        </div>
      </Panel>
      <Panel title="Usage" hint="Days in Seoul time (KST, UTC+9)">
        <Days own={props.own} />
      </Panel>
    </>
  );
}

function Facts(props: { own: OwnKey }): JSX.Element {
  const reset = (): string | null => props.own.resets.tokens_per_day ?? props.own.resets.tokens_per_month ?? null;
  return (
    <>
      <Show when={reset()}>{(at) => <p>Tokens are counted anew from {dateTimeLabel(Date.parse(at()))} on.</p>}</Show>
      <Show when={props.own.expires_at}>{(at) => <p>The key expires on {dateTimeLabel(Date.parse(at()))}.</p>}</Show>
      <Show when={props.own.allowed_models}>{(models) => <p>Allowed models: {models().join(", ")}.</p>}</Show>
      <Show when={props.own.refused_today > 0}>
        <p>{plural(props.own.refused_today, "request")} refused by these limits today.</p>
      </Show>
    </>
  );
}

const tokensOf = (sums: { input_tokens: number; output_tokens: number }): number =>
  sums.input_tokens + sums.output_tokens;

function Days(props: { own: OwnKey }): JSX.Element {
  const most = (): number => Math.max(1, ...props.own.daily.map(tokensOf));
  const rows = () => [
    { label: "This month", sums: props.own.this_month, bar: false },
    { label: "Today", sums: props.own.today, bar: false },
    ...props.own.daily.toReversed().map((day) => ({ label: day.date, sums: day, bar: true })),
  ];
  return (
    <div class="table-scroll">
      <table>
        <caption class="visually-hidden">Usage by day</caption>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col" class="number">
              Requests
            </th>
            <th scope="col" class="number">
              Input tokens
            </th>
            <th scope="col" class="number">
              Output tokens
            </th>
            <th scope="col">
              <span class="visually-hidden">Share of the busiest day</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <For each={rows()}>
            {(row) => (
              <tr>
                <th scope="row">{row.label}</th>
                <td class="number">{count(row.sums.request_count)}</td>
                <td class="number">{count(row.sums.input_tokens)}</td>
                <td class="number">{count(row.sums.output_tokens)}</td>
                <td>
                  <Show when={row.bar}>
                    <meter aria-label={`Tokens on ${row.label}`} min={0} max={most()} value={tokensOf(row.sums)} />
                  </Show>
                </td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
    </div>
  );
}
