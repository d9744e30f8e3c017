import { createSignal, type JSX, Match, Show, Switch } from "solid-js";
import { causeOf } from "../client.ts";
import { session } from "../lib/session.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { useSettingsQuery } from "../queries.ts";
import { Button, InputField } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { NotLoaded, Panel, type PanelQuery } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import { clientName } from "./client-name.ts";
import { type ConsoleSession, useChangePassword, useEndSession, useSessionsQuery } from "./queries.ts";
import { NewTokenButton, TokensPanel } from "./tokens-panel.tsx";
import "../styles/lazy-pages.css";
import { actions, Table } from "../ui/table.tsx";

/** The password, the sessions that it has opened, and the tokens of programs. */
export function AccountPage(): JSX.Element {
  const sessions = useSessionsQuery();
  const settings = useSettingsQuery();
  const isAdmin = (): boolean => [undefined, "admin"].includes(session()?.role);
  return (
    <Page
      title="Account"
      help="security"
      sources={[{ name: "Sessions", query: sessions }]}
      actions={
        <Show when={isAdmin()}>
          <NewTokenButton />
        </Show>
      }
    >
      <SectionTabs section="settings" label="Settings" />
      <SessionsPanel sessions={sessions.data} query={sessions} />
      <Show when={isAdmin()}>
        <Panel title="Password">
          <Switch fallback={<SkeletonList />}>
            <Match when={settings.data?.password_from_environment === true}>
              <FromEnvironment />
            </Match>
            <Match when={settings.data}>
              <PasswordForm />
            </Match>
            <Match when={settings.isError}>
              <NotLoaded query={settings} />
            </Match>
          </Switch>
        </Panel>
        <TokensPanel />
      </Show>
    </Page>
  );
}

const FromEnvironment = (): JSX.Element => (
  <p class="panel-body">The password is set by ADMIN_PASSWORD in the server’s environment. Change it there.</p>
);

const minLength = 8;

function PasswordForm(): JSX.Element {
  const change = useChangePassword();
  const [problem, setProblem] = createSignal<string>();
  let form: HTMLFormElement | undefined;
  let current: HTMLInputElement | undefined;
  let next: HTMLInputElement | undefined;
  let repeated: HTMLInputElement | undefined;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setProblem(undefined);
    if (next?.value !== repeated?.value) {
      setProblem("The two new passwords differ");
      repeated?.focus();
      return;
    }
    change.mutate(
      { current: current?.value ?? "", next: next?.value ?? "" },
      { onSuccess: () => form?.reset(), onError: (error) => setProblem(causeOf(error)) },
    );
  };
  return (
    <form class="panel-body narrow" ref={form} onSubmit={submit}>
      {/* For password managers. */}
      <input type="text" autocomplete="username" value={session()?.username ?? ""} readonly hidden />
      <InputField
        label="Current password"
        hint="A stolen session cannot change the password."
        ref={current}
        type="password"
        required
        autocomplete="current-password"
      />
      <InputField
        label="New password"
        hint={`At least ${minLength} characters.`}
        ref={next}
        type="password"
        required
        minlength={minLength}
        maxlength="512"
        autocomplete="new-password"
      />
      <InputField
        label="New password, again"
        hint="All other sessions end when the password changes."
        ref={repeated}
        type="password"
        required
        autocomplete="new-password"
      />
      <div role="alert">
        <Show when={problem()}>{(text) => <p class="form-error">{text()}.</p>}</Show>
      </div>
      <div class="actions">
        <Button tone="primary" type="submit" disabled={change.isPending}>
          Change password
        </Button>
      </div>
    </form>
  );
}

/** @param props.sessions undefined while they load */
export function SessionsPanel(props: { sessions: ConsoleSession[] | undefined; query: PanelQuery }): JSX.Element {
  const endSession = useEndSession();
  const others = (): number => props.sessions?.filter(({ is_current: isCurrent }) => !isCurrent).length ?? 0;
  return (
    <Panel
      title="Sessions"
      hint="Where this console is logged in"
      actions={
        <Show when={others() > 0}>
          <Button disabled={endSession.isPending} onClick={() => endSession.mutate(undefined)}>
            End all others
          </Button>
        </Show>
      }
    >
      <Table
        caption="Sessions"
        class="sessions"
        heads={["Client", "Address", "Created", "Last seen", actions]}
        query={props.query}
        rows={props.sessions}
        skeleton={2}
      >
        {(one) => <SessionRow session={one} onEnd={() => endSession.mutate(one.id)} />}
      </Table>
    </Panel>
  );
}

function SessionRow(props: { session: ConsoleSession; onEnd: () => void }): JSX.Element {
  return (
    <tr>
      <th scope="row" class="cut" title={props.session.client ?? undefined}>
        <Show when={props.session.user_id !== null}>
          <bdi>{props.session.username}</bdi>
          {" · "}
        </Show>
        <Show when={props.session.client} fallback={<span class="faint">Unknown client</span>}>
          {(client) => clientName(client())}
        </Show>
      </th>
      <td data-label="Address">{props.session.address ?? "–"}</td>
      <td data-label="Created">
        <Show when={props.session.created_at} fallback="–">
          {(at) => <time datetime={at()}>{dateTimeLabel(Date.parse(at()))}</time>}
        </Show>
      </td>
      <td data-label="Last seen">
        <Show when={props.session.last_seen_at} fallback="–">
          {(at) => <RelativeTime at={Date.parse(at())} />}
        </Show>
      </td>
      <td class="row-actions">
        <Show when={!props.session.is_current} fallback={<span class="faint">This session</span>}>
          <Button
            aria-label={`End the session of ${clientName(props.session.client ?? "an unknown client")}`}
            onClick={() => props.onEnd()}
          >
            End
          </Button>
        </Show>
      </td>
    </tr>
  );
}
