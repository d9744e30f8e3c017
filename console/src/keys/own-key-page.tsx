import { useNavigate } from "@solidjs/router";
import { useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { createEffect, createSignal, type JSX, onMount, Show } from "solid-js";
import { type api, ApiError, causeOf, requestWithKey } from "../client.ts";
import { plural } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { mayHaveSession, session } from "../lib/session.ts";
import { resumeSession } from "../operator/session-of-cookie.ts";
import { OwnKeysPage } from "./own-keys-page.tsx";
import { QuickStart } from "../start/quick-start.tsx";
import { Button, LabelledInput } from "../ui/controls.tsx";
import { Logo } from "../ui/icon.tsx";
import { Panel } from "../ui/panel.tsx";
import { DailyTokens } from "./key-chart.tsx";
import { usedLimits } from "./key-limits.ts";
import {
  type EnteredKey,
  MonthFigures,
  type OwnActivity,
  OwnActivityPanels,
  SumFigures,
  useOwnActivityQuery,
} from "./own-activity.tsx";
import { UsedLimits } from "./used-limits.tsx";
import "../styles/lazy-pages.css";

/** Of who has signed in, their keys; else of the holder of a key. */
export function OwnKeyPage(): JSX.Element {
  const [resuming, setResuming] = createSignal(session() === undefined && mayHaveSession());
  const navigate = useNavigate();
  const isPerson = (): boolean => session()?.role !== undefined;
  createEffect((was: boolean) => {
    if (was && session() === undefined) navigate("/login", { replace: true });
    return isPerson();
  }, false);
  onMount(() => {
    // Without a session, it asks for a key.
    const end = (): boolean => setResuming(false);
    if (resuming()) void resumeSession().then(end, end);
  });
  return (
    <Show when={!resuming()}>
      <Show when={isPerson()} fallback={<HolderPage />}>
        <OwnKeysPage />
      </Show>
    </Show>
  );
}

/** Shows the holder of a key its limits and usage. The key is kept in memory only, so a reload asks for it again. */
function HolderPage(): JSX.Element {
  const [entered, setEntered] = createSignal<EnteredKey>();
  const query = useOwnKeyQuery(entered);
  const activity = useOwnActivityQuery(entered);
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
            entered={entered()?.key ?? ""}
            activity={activity.data}
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
      <LabelledInput label="API key" class="field" ref={input} type="password" spellcheck={false} required />
      <Show when={props.error}>
        {(error) => (
          <p class="form-error" role="alert">
            {causeOf(error())}.
          </p>
        )}
      </Show>
      <Button tone="primary" type="submit" disabled={props.busy}>
        Show my limits and usage
      </Button>
      <p class="hint">The key stays in this tab’s memory and is not stored.</p>
    </form>
  );
}

function OwnKeyPanels(props: {
  own: OwnKey;
  entered: string;
  activity: OwnActivity | undefined;
  error: Error | null;
  onLeave: () => void;
}): JSX.Element {
  return (
    <>
      <header class="page-head">
        <h1>
          <bdi>{props.own.name}</bdi>
        </h1>
        <div class="actions">
          <Button onClick={() => props.onLeave()}>Use another key</Button>
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
        <SumFigures of={props.own} />
        <Show when={props.activity}>{(activity) => <MonthFigures month={activity().this_month} />}</Show>
      </dl>
      <Panel title="Limits">
        <div class="panel-body">
          <Show when={usedLimits(props.own).length > 0} fallback={<p>This key has no limits.</p>}>
            <UsedLimits key={props.own} />
          </Show>
          <Facts own={props.own} />
        </div>
      </Panel>
      <Show when={props.own.team}>
        {(team) => (
          <Panel title="Limits of your team" hint={team().name}>
            <div class="panel-body">
              <p>These hold for all of the team’s keys together, beside this key’s own.</p>
              <Show when={usedLimits(team()).length > 0} fallback={<p>The team has no limits.</p>}>
                <UsedLimits key={team()} />
              </Show>
            </div>
          </Panel>
        )}
      </Show>
      <Panel title="Clients" hint="Lines with your key">
        <div class="panel-body">
          <QuickStart holderKey={props.entered} />
        </div>
      </Panel>
      <Panel title="Tokens" hint="Input and output, by day in Seoul time (KST, UTC+9)">
        <DailyTokens days={props.own.daily} now={Date.parse(props.own.now)} whose="key" loaded />
      </Panel>
      <Show when={props.activity}>{(activity) => <OwnActivityPanels activity={activity()} />}</Show>
    </>
  );
}

const Facts = (props: { own: OwnKey }): JSX.Element => (
  <>
    <Show when={props.own.expires_at}>{(at) => <p>The key expires on {dateTimeLabel(Date.parse(at()))}.</p>}</Show>
    <Show when={props.own.allowed_paths}>{(paths) => <p>Allowed paths: {paths().join(", ")}.</p>}</Show>
    <Show when={props.own.allowed_models}>{(models) => <p>Allowed models: {models().join(", ")}.</p>}</Show>
    <Show when={props.own.refused_today > 0}>
      <p>{plural(props.own.refused_today, "request")} refused by these limits today.</p>
    </Show>
  </>
);

/** What `GET /api/own-key` tells the holder of a key. */
type OwnKey = NonNullable<Awaited<ReturnType<(typeof api)["own-key"]["get"]>>["data"]>;

/** Whether the server does not accept the key, or no longer. */
const isRefused = (error: Error | null): boolean => error instanceof ApiError && error.status === 401;

/** @param entered undefined: nothing is requested */
const useOwnKeyQuery = (entered: () => EnteredKey | undefined): UseQueryResult<OwnKey> =>
  useQuery(() => ({
    enabled: entered() !== undefined,
    queryKey: ["own-key", entered()?.attempt],
    queryFn: () => requestWithKey<OwnKey>("/api/own-key", entered()?.key ?? ""),
    // A key that is refused stays refused.
    refetchInterval: ({ state }) => (isRefused(state.error) ? false : 10_000),
    gcTime: 0,
    staleTime: 0,
  }));
