import { createEffect, createMemo, createSignal, For, type JSX, Match, type ParentProps, Show, Switch } from "solid-js";
import { saveCount, savedCount } from "../lib/browser-settings.ts";
import chapter from "../handbook/settings.md?raw";
import { byteSize, count, plural } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { type Settings, useClientRulesQuery, useSettingsQuery } from "../queries.ts";
import { CopyLine } from "../ui/copy-button.tsx";
import { Button, FilterField, SegmentedControl } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Icon } from "../ui/icon.tsx";
import { EmptyState, Fact, NotLoaded, Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { SkeletonList, SkeletonRows } from "../ui/skeleton.tsx";
import { adviceSentences, silentStreamsProblem } from "./client-advice.ts";
import { useAskedModelsQuery, useProgramsQuery, useTestNotice } from "./queries.ts";
import { groupSettings, settingSentences, unitOf } from "./setting-groups.ts";
import { vendorNamesProblem } from "./vendor-names.ts";
import "../styles/lazy-pages.css";

/** How this server is set up. Settings change in its environment, not here; `children` are what changes here. */
export function SettingsPage(props: ParentProps): JSX.Element {
  const settings = useSettingsQuery();
  const notice = useTestNotice();
  createEffect(
    () =>
      settings.data &&
      saveCount("settings", rowsOf(settings.data.settings.filter(({ origin }) => origin !== "default"))),
  );
  return (
    <Page
      title="Settings"
      help="settings"
      sources={[{ name: "Settings", query: settings, slow: true }]}
      actions={
        <Show when={settings.data?.settings.some(({ name, is_set }) => name === "NOTICE_URL" && is_set)}>
          <Button disabled={notice.isPending} onClick={() => notice.mutate()}>
            Send a test notice
          </Button>
        </Show>
      }
    >
      <SectionTabs section="settings" label="Settings" />
      <Show
        when={settings.data !== undefined || !settings.isError}
        fallback={
          <section class="panel" aria-label="Settings">
            <NotLoaded query={settings} />
          </section>
        }
      >
        <VendorNamesNotice settings={settings.data?.settings} />
        <Show
          when={settings.data?.settings.some(
            ({ name, value }) => name === "PROXY_SSE_KEEPALIVE" && Number(value) === 0,
          )}
        >
          <SilentStreamsNotice />
        </Show>
        <ClientRulesNotice />
        <SettingsPanel settings={settings.data?.settings} />
        <ProviderPanel settings={settings.data?.settings ?? []} />
        {props.children}
        <div class="columns">
          <FactsPanel title="Versions" facts={settings.data && versionFacts(settings.data)} />
          <FactsPanel
            title="Retention"
            facts={settings.data?.retention.map(({ data, keeps, holds }) => [
              data,
              holds === undefined ? keeps : `${keeps}: ${holds}`,
            ])}
          />
        </div>
        <FactsPanel
          title="Database"
          hint={settings.data && `${byteSize(settings.data.database.size_bytes)} in total, rows by table`}
          facts={settings.data && [...backupFacts(settings.data), ...tableFacts(settings.data)]}
        />
      </Show>
    </Page>
  );
}

type Setting = Settings["settings"][number];

/** With the heads of their groups. */
const rowsOf = (settings: readonly Setting[]): number => settings.length + groupSettings(settings).length;

function VendorNamesNotice(props: { settings: Setting[] | undefined }): JSX.Element {
  const asked = useAskedModelsQuery();
  const problem = (): string | undefined =>
    props.settings && asked.data && vendorNamesProblem(props.settings, asked.data);
  return (
    <Warning text={problem()}>
      <HandbookLink to="agents#names-of-models">Agents and their model names</HandbookLink>
    </Warning>
  );
}

/** Of a server that sends no heartbeats. */
function SilentStreamsNotice(): JSX.Element {
  const programs = useProgramsQuery();
  return (
    <Warning text={silentStreamsProblem(programs.data ?? [])}>
      <HandbookLink to="agents#silent-streams">Silent streams</HandbookLink>
    </Warning>
  );
}

/** @param props.text undefined if there is nothing to warn of */
const Warning = (props: { text: string | undefined; children: JSX.Element }): JSX.Element => (
  <Show when={props.text}>
    {(text) => (
      <div class="notice" data-tone="warning" role="note">
        <Icon name="warning" />
        <p>
          {text()} {props.children}
        </p>
      </div>
    )}
  </Show>
);

/** Which client rules would have helped whom in the last day. */
function ClientRulesNotice(): JSX.Element {
  const rules = useClientRulesQuery();
  const sentences = (): string[] => adviceSentences(rules.data?.rows ?? []);
  return (
    <Show when={sentences().length > 0}>
      <div class="notice" data-tone="warning" role="note">
        <Icon name="warning" />
        <div>
          <For each={sentences().slice(0, 5)}>{(sentence) => <p>{sentence}</p>}</For>
          <p>
            All in the last 24 hours. <code>CLIENT_RULES=auto</code> applies them.{" "}
            <HandbookLink to="agents#what-agents-send">What agents send</HandbookLink>
          </p>
        </div>
      </div>
    </Show>
  );
}

/** What a provider of OpenID Connect asks for. */
function ProviderPanel(props: { settings: Setting[] }): JSX.Element {
  const valueOf = (wanted: string) => props.settings.find(({ name }) => name === wanted)?.value;
  return (
    <Show when={valueOf("OIDC_ISSUER") && valueOf("ADMIN_URL")}>
      {(origin) => (
        <Panel title="Sign-in" hint="The provider asks for these addresses: redirect URI, and back-channel logout URI">
          <div class="panel-body">
            <CopyLine text={`${origin()}/login/oidc`} what="the redirect URI" />
            <CopyLine text={`${origin()}/login/oidc/logout`} what="the back-channel logout URI" />
          </div>
        </Panel>
      )}
    </Show>
  );
}

const versionFacts = ({ versions }: Settings): [string, string][] => [
  ["Tollgate", versions.tollgate],
  ["Commit", versions.commit],
  ["Bun", versions.bun],
  ["Database", versions.database],
];

const backupFacts = ({ backup: { command, problem, succeeded_at: succeededAt } }: Settings): [string, string][] => [
  ["Latest backup by the server", succeededAt === null ? "None" : dateTimeLabel(Date.parse(succeededAt))],
  ...(problem === null
    ? []
    : [[`Backup failed ${dateTimeLabel(Date.parse(problem.at))}`, problem.reason] as [string, string]]),
  ["Command for other backups", command],
];

const tableFacts = ({ database }: Settings): [string, string][] =>
  database.tables.map(({ name, rows, is_exact: isExact }) => [name, isExact ? count(rows) : `At least ${count(rows)}`]);

const shownOptions = [
  { value: "all", label: "All" },
  { value: "set", label: "Set" },
] as const;

/** Those that are set, or all. A search looks through all. @param props.settings undefined while they load */
function SettingsPanel(props: { settings: Setting[] | undefined }): JSX.Element {
  const [search, setSearch] = createSignal("");
  const [shown, setShown] = createSignal<"all" | "set">("set");
  const matching = createMemo(() => {
    const wanted = search().trim().toLowerCase();
    return props.settings?.filter(
      ({ name, origin }) =>
        name.toLowerCase().includes(wanted) && (wanted !== "" || shown() === "all" || origin !== "default"),
    );
  });
  return (
    <>
      <div class="toolbar">
        <FilterField label="Filter by name" value={search()} onInput={setSearch} />
        <SegmentedControl label="Settings shown" options={shownOptions} value={shown()} onChange={setShown} />
        <p class="toolbar-note" role="status">
          <Show when={matching()}>{(found) => plural(found().length, "setting")}</Show>
        </p>
      </div>
      <section class="panel" aria-label="Settings">
        <Switch fallback={<SettingsTable settings={matching()} />}>
          <Match when={matching()?.length === 0}>
            <EmptyState title="No matching setting" />
          </Match>
        </Switch>
        <p class="table-foot">Settings change in the server’s environment, and apply when it starts.</p>
      </section>
    </>
  );
}

const SettingsTable = (props: { settings: Setting[] | undefined }): JSX.Element => (
  <div class="table-scroll">
    <table class="cards-on-phone settings">
      <caption class="visually-hidden">Settings</caption>
      <thead>
        <tr>
          <For each={["Name", "Value", "From", "What it does"]}>{(label) => <th scope="col">{label}</th>}</For>
        </tr>
      </thead>
      <Show
        when={props.settings}
        fallback={
          <tbody>
            <SkeletonRows columns={4} rows={savedCount("settings", 10)} />
          </tbody>
        }
      >
        {(settings) => (
          <For each={groupSettings(settings())}>
            {(group) => (
              <tbody>
                <tr class="setting-group">
                  <th scope="rowgroup" colspan="4">
                    {group.title}
                  </th>
                </tr>
                <For each={group.settings}>{(setting) => <SettingRow setting={setting} />}</For>
              </tbody>
            )}
          </For>
        )}
      </Show>
    </table>
  </div>
);

const sentences = settingSentences(chapter);

const SettingRow = (props: { setting: Setting }): JSX.Element => (
  <tr>
    <th scope="row">
      <code>{props.setting.name}</code>
    </th>
    <td class="text" data-label="Value">
      <SettingValue setting={props.setting} />
    </td>
    <td data-label="From">{originLabels[props.setting.origin]}</td>
    <td class="text faint" data-label="What it does" title={`Allowed: ${props.setting.allowed}`}>
      {sentences.get(props.setting.name) ?? props.setting.allowed}
    </td>
  </tr>
);

const originLabels = { environment: "Environment", ".env": ".env file", default: "Default" } as const;

/** Secrets never reach the browser. */
function SettingValue(props: { setting: Setting }): JSX.Element {
  const text = (): string => {
    if (props.setting.is_secret) return props.setting.is_set ? "Set (secret)" : "Not set";
    return props.setting.value === null || props.setting.value === "" ? "Not set" : props.setting.value;
  };
  const unit = (): string => (props.setting.value ? unitOf({ ...props.setting, value: props.setting.value }) : "");
  return (
    <>
      <span classList={{ faint: props.setting.is_secret || !props.setting.value, mono: Boolean(props.setting.value) }}>
        {text()}
      </span>
      <Show when={unit()}>
        {" "}
        <span class="faint">{unit()}</span>
      </Show>
    </>
  );
}

/** @param props.facts undefined while they load */
function FactsPanel(props: {
  title: string;
  hint?: string | undefined;
  facts: readonly (readonly string[])[] | undefined;
}): JSX.Element {
  return (
    <Panel title={props.title} hint={props.hint}>
      <Show when={props.facts} fallback={<SkeletonList />}>
        {(facts) => (
          <dl class="facts panel-body">
            <For each={facts()}>{([name = "", value]) => <Fact name={name}>{value}</Fact>}</For>
          </dl>
        )}
      </Show>
    </Panel>
  );
}
