import { A } from "@solidjs/router";
import { useQuery } from "@tanstack/solid-query";
import { createEffect, createSignal, type JSX, Match, onMount, Show, Switch } from "solid-js";
import { api, responseBody } from "../client.ts";
import { SumFigures } from "./own-activity.tsx";
import { DailyTokens } from "./key-chart.tsx";
import { usedLimits } from "./key-limits.ts";
import { type Limits, LimitFields } from "./limit-fields.tsx";
import { UsedLimits } from "./used-limits.tsx";
import { plural } from "../lib/format.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { isMember, session } from "../lib/session.ts";
import { dateTimeLabel, dayLabel } from "../lib/time-labels.ts";
import { showToast } from "../lib/toasts.ts";
import { SessionsPanel } from "../operator/account-page.tsx";
import { useSessionsQuery } from "../operator/queries.ts";
import { logOut } from "../operator/shell.tsx";
import { type QueryResult, useChange } from "../queries.ts";
import { InputField, ToggleSwitch } from "../ui/controls.tsx";
import { ShownOnce } from "../ui/copy-button.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { Menu } from "../ui/menu.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { actions, Table } from "../ui/table.tsx";
import { QuickStart } from "../start/quick-start.tsx";
import "../styles/lazy-pages.css";

const getOwnKeys = () => responseBody(api.me.keys.get());
type OwnKeys = Awaited<ReturnType<typeof getOwnKeys>>;
type OwnKey = OwnKeys["keys"][number];
const useOwnKeysQuery = (): QueryResult<typeof getOwnKeys> =>
  useQuery(() => ({ queryKey: ["own-keys"], queryFn: getOwnKeys, refetchInterval: 10_000, reconcile: "id" }));
const getOwnUsage = () => responseBody(api.me.usage.get());
type OwnUsage = Awaited<ReturnType<typeof getOwnUsage>>;
const useOwnUsageQuery = (): QueryResult<typeof getOwnUsage> =>
  useQuery(() => ({ queryKey: ["own-usage"], queryFn: getOwnUsage, refetchInterval: 10_000 }));

const ownKeys = { refreshes: ["own-keys"], isSecret: true };

const useChangeOwnKey = () =>
  useChange(
    ({ key, ...change }: { key: OwnKey; name?: string; is_active?: boolean }): Promise<OwnKey> =>
      responseBody(api.me.keys({ id: key.id }).patch(change)),
    ownKeys,
  );

/** The name without that of the user. */
const ownNameOf = ({ name }: OwnKey): string => name.slice(name.indexOf(": ") + 2);

type Opened = { kind: "new" } | { kind: "rename" | "rotate" | "secret"; key: OwnKey };

/** Of who has signed in: their own keys, what they use, and what their team does. */
export function OwnKeysPage(): JSX.Element {
  const keys = useOwnKeysQuery();
  const usage = useOwnUsageQuery();
  const sessions = useSessionsQuery();
  const [opened, setOpened] = createSignal<Opened>();
  createEffect(() => void (document.title = "Your keys · Tollgate"));
  return (
    <main class="own-keys" id="main">
      <header class="page-head">
        <h1>
          <bdi>{session()?.username}</bdi>
        </h1>
        <div class="actions">
          <Show when={!isMember()}>
            <A class="button" href="/">
              Overview
            </A>
          </Show>
          <button class="button" type="button" onClick={() => void logOut(() => {})}>
            Log out
          </button>
          <button
            class="button primary"
            type="button"
            disabled={keys.data === undefined}
            onClick={() => setOpened({ kind: "new" })}
          >
            New key
          </button>
        </div>
      </header>
      <Show when={usage.data}>{(own) => <EndNotice usage={own()} />}</Show>
      <Panel title="Your keys" hint={hintOf(keys.data)}>
        <Table
          caption="Your keys"
          heads={["Name", "Key", "Active", "Last used", "Expires", actions]}
          query={keys}
          rows={keys.data?.keys}
          empty={<EmptyState title="No keys yet: “New key” makes one, and fills in the file of your client" />}
        >
          {(key) => <OwnKeyRow key={key} onOpen={setOpened} />}
        </Table>
      </Panel>
      <Show when={usage.data} fallback={usage.isError && <NotLoaded query={usage} />}>
        {(own) => <UsagePanels usage={own()} />}
      </Show>
      <Show when={isMember()}>
        <SessionsPanel sessions={sessions.data} query={sessions} />
      </Show>
      <Show when={opened()} keyed>
        {(what) => (
          <OwnKeyDialog opened={what} ceilings={keys.data?.ceilings} onOpen={setOpened} onClose={() => setOpened()} />
        )}
      </Show>
    </main>
  );
}

const hintOf = (own: OwnKeys | undefined): string =>
  own === undefined ? "" : `${own.keys.length} of ${plural(own.ceilings.max_keys ?? 0, "key")}`;

const announcedMs = 7 * dayMs;

/** From seven days before on. */
const EndNotice = (props: { usage: OwnUsage }): JSX.Element => (
  <Show when={props.usage.keys_end_at !== null && props.usage.keys_end_at}>
    {(at) => (
      <Show when={Date.parse(at()) - Date.parse(props.usage.now) < announcedMs}>
        <p class="notice" role="status">
          Your keys end on {dateTimeLabel(Date.parse(at()))}, unless you log out and sign in again before.
        </p>
      </Show>
    )}
  </Show>
);

function OwnKeyRow(props: { key: OwnKey; onOpen: (what: Opened) => void }): JSX.Element {
  const change = useChangeOwnKey();
  const setActive = (isActive: boolean): void =>
    change.mutate(
      { key: props.key, is_active: isActive },
      { onError: (error) => showToast(`“${props.key.name}” was not changed: ${error.message}`, "error") },
    );
  return (
    <tr classList={{ inactive: !props.key.is_active }}>
      <th scope="row" class="cut" title={props.key.name}>
        <bdi>{props.key.name}</bdi>
      </th>
      <td data-label="Key">
        <code>{props.key.key}</code>
      </td>
      <td data-label="Active">
        <ToggleSwitch label={`${props.key.name} is active`} on={props.key.is_active} onChange={setActive} />
      </td>
      <td data-label="Last used">
        <RelativeTimeOrNever at={props.key.last_used_at} />
      </td>
      <td data-label="Expires">
        <Show when={props.key.expires_at} fallback="Never">
          {(at) => <time datetime={at()}>{dayLabel(Date.parse(at()))}</time>}
        </Show>
      </td>
      <td class="row-actions">
        <Menu
          label={`Actions of ${props.key.name}`}
          items={[
            { label: "Rename", onSelect: () => props.onOpen({ kind: "rename", key: props.key }) },
            { label: "New secret", onSelect: () => props.onOpen({ kind: "rotate", key: props.key }) },
          ]}
        />
      </td>
    </tr>
  );
}

const UsagePanels = (props: { usage: OwnUsage }): JSX.Element => (
  <>
    <dl class="figures">
      <SumFigures of={props.usage} />
    </dl>
    <Show when={usedLimits(props.usage).length > 0}>
      <Panel title="Your limits" hint="Of all your keys together">
        <div class="panel-body">
          <UsedLimits key={props.usage} />
        </div>
      </Panel>
    </Show>
    <Panel title="Your tokens" hint="Input and output, by day in Seoul time (KST, UTC+9)">
      <DailyTokens days={props.usage.daily} now={Date.parse(props.usage.now)} whose="user" loaded />
    </Panel>
    <Show when={props.usage.team}>
      {(team) => (
        <Panel title="Your team" hint={team().name}>
          <div class="panel-body">
            <dl class="figures">
              <SumFigures of={team()} />
            </dl>
            <Show when={usedLimits(team()).length > 0} fallback={<p>The team has no limits.</p>}>
              <p>These hold for all of the team together, beside your own.</p>
              <UsedLimits key={team()} />
            </Show>
          </div>
        </Panel>
      )}
    </Show>
  </>
);

interface DialogProps {
  opened: Opened;
  ceilings: OwnKeys["ceilings"] | undefined;
  onOpen: (what: Opened) => void;
  onClose: () => void;
}

const titles = { new: "New key", rename: "New name", rotate: "New secret" };

function OwnKeyDialog(props: DialogProps): JSX.Element {
  const key = (): OwnKey | undefined => (props.opened.kind === "new" ? undefined : props.opened.key);
  const title = (): string => (props.opened.kind === "secret" ? `Key for “${key()?.name}”` : titles[props.opened.kind]);
  return (
    <Dialog title={title()} persistent={props.opened.kind === "secret"} onClose={props.onClose}>
      <Switch fallback={<NewKeyForm {...props} />}>
        <Match when={props.opened.kind === "secret" && key()}>
          {(made) => (
            <ShownOnce secret={made().key} what="the key" onDone={props.onClose}>
              <QuickStart holderKey={made().key} />
            </ShownOnce>
          )}
        </Match>
        <Match when={props.opened.kind === "rename" && key()}>
          {(renamed) => <RenameForm key={renamed()} onClose={props.onClose} />}
        </Match>
        <Match when={props.opened.kind === "rotate" && key()}>
          {(rotated) => <RotateForm {...props} key={rotated()} />}
        </Match>
      </Switch>
    </Dialog>
  );
}

const NameField = (props: { value?: string; ref: (input: HTMLInputElement) => void }): JSX.Element => (
  <InputField
    {...props}
    label="Name"
    hint="The program that uses the key. Your own name comes before it."
    required
    maxlength="60"
    placeholder="e.g. codex"
  />
);

function NewKeyForm(props: DialogProps): JSX.Element {
  const create = useChange(
    (fields: Limits & { name: string }): Promise<OwnKey> => responseBody(api.me.keys.post(fields)),
    ownKeys,
  );
  const [limits, setLimits] = createSignal<Limits>({});
  let name: HTMLInputElement | undefined;
  onMount(() => name?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    create.mutate(
      { ...limits(), name: name?.value ?? "" },
      { onSuccess: (key) => props.onOpen({ kind: "secret", key }) },
    );
  };
  return (
    <form onSubmit={submit}>
      <NameField ref={(input) => (name = input)} />
      <details>
        <summary>Limits</summary>
        <p class="hint">These are the most that a key may have. An empty field takes that.</p>
        <LimitFields of={props.ceilings} onChange={(changed) => setLimits((before) => ({ ...before, ...changed }))} />
      </details>
      <Show when={props.ceilings?.expires_in_days}>{(days) => <p>It expires after {plural(days(), "day")}.</p>}</Show>
      <FormEnd error={create.error} action="Create key" isPending={create.isPending} onCancel={props.onClose} />
    </form>
  );
}

function RenameForm(props: { key: OwnKey; onClose: () => void }): JSX.Element {
  const change = useChangeOwnKey();
  let name: HTMLInputElement | undefined;
  onMount(() => name?.select());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    change.mutate({ key: props.key, name: name?.value ?? "" }, { onSuccess: () => props.onClose() });
  };
  return (
    <form onSubmit={submit}>
      <NameField ref={(input) => (name = input)} value={ownNameOf(props.key)} />
      <FormEnd error={change.error} action="Rename" isPending={change.isPending} onCancel={props.onClose} />
    </form>
  );
}

function RotateForm(props: DialogProps & { key: OwnKey }): JSX.Element {
  const rotate = useChange(
    ({ id }: OwnKey): Promise<OwnKey> => responseBody(api.me.keys({ id }).rotate.post({})),
    ownKeys,
  );
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    rotate.mutate(props.key, { onSuccess: (key) => props.onOpen({ kind: "secret", key }) });
  };
  return (
    <form onSubmit={submit}>
      <p>The key keeps its name, its totals and its limits. The old secret ends at once.</p>
      <FormEnd
        error={rotate.error}
        action="Replace the secret"
        danger
        isPending={rotate.isPending}
        onCancel={props.onClose}
      />
    </form>
  );
}
