// The console starts here: its pages by their addresses, and what stands above all pages.
//
// A folder is a feature: start, keys, usage, requests, gpus, operator; `ui`, `charts` and `lib` are for all of them,
// and a page ends in `-page`. It keeps true: less often opened pages have scripts of their own; what a session has left
// in memory goes when it ends. Of the server, the browser gets types, and values of `src/domain`.
//
// Removed: folders by kind (parts, data, pages), with which a change of one page touched three.

import { Navigate, Route, Router } from "@solidjs/router";
import { QueryClientProvider } from "@tanstack/solid-query";
import { createEffect, type JSX, Show } from "solid-js";
import { render } from "solid-js/web";
import { closeRunningQuestion, runningQuestion } from "./keys/key-mutations.ts";
import { KeysPage } from "./keys/keys-page.tsx";
import { NewKeyDialogs } from "./keys/new-key-dialog.tsx";
import { tickWhileVisible } from "./lib/server-clock.ts";
import { type Session, session, syncSessionAcrossTabs } from "./lib/session.ts";
import { syncThemeAcrossTabs } from "./lib/theme.ts";
import { syncTimeZoneAcrossTabs } from "./lib/time-zone.ts";
import { LoginPage } from "./operator/login-page.tsx";
import { RequireSession } from "./operator/require-session.tsx";
import { tryResumeSession } from "./operator/session-of-cookie.ts";
import { queryClient } from "./queries.ts";
import { OverviewPage } from "./start/overview-page.tsx";
import { setPlaygroundKey } from "./start/playground-key.ts";
import { FailedDialog, lazyPage, lazyPanels, lazyPart } from "./ui/lazy.tsx";
import { NotFoundPage } from "./ui/not-found-page.tsx";
import { Toasts } from "./ui/toasts.tsx";
import { UsagePage } from "./usage/usage-page.tsx";
import "./styles/index.css";

// Less often opened, so not part of the first view's script.
const RequestsPage = lazyPage("Requests", async () => (await import("./requests/requests-page.tsx")).RequestsPage);
const RunningPage = lazyPage("Running now", async () => (await import("./requests/running-page.tsx")).RunningPage);
const LatencyPage = lazyPage(
  "Latency and failures",
  async () => (await import("./requests/latency-page.tsx")).LatencyPage,
);
const KeyPage = lazyPage("API key", async () => (await import("./keys/key-page.tsx")).KeyPage);
const TeamsPage = lazyPage("Teams", async () => (await import("./keys/teams-page.tsx")).TeamsPage);
const TeamPage = lazyPage("Team", async () => (await import("./keys/teams-page.tsx")).TeamPage);
const OwnKeyPage = lazyPage("Your API key", async () => (await import("./keys/own-key-page.tsx")).OwnKeyPage);
const GpusPage = lazyPage("GPUs", async () => (await import("./gpus/gpus-page.tsx")).GpusPage);
const GpuPage = lazyPage("GPU", async () => (await import("./gpus/gpu-page.tsx")).GpuPage);
const SettingsPage = lazyPage("Settings", async () => (await import("./operator/settings-page.tsx")).SettingsPage);
const KeyPolicyPanel = lazyPanels("New keys", async () => (await import("./keys/key-policy.tsx")).KeyPolicyPanel);
const BackendsPage = lazyPage("Backends", async () => (await import("./operator/backends-page.tsx")).BackendsPage);
const PricesPage = lazyPage("Prices", async () => (await import("./operator/prices-page.tsx")).PricesPage);
const AccountPage = lazyPage("Account", async () => (await import("./operator/account-page.tsx")).AccountPage);
const ChangesPage = lazyPage("Changes", async () => (await import("./operator/changes-page.tsx")).ChangesPage);
const HelpPage = lazyPage("Quick start", async () => (await import("./start/help-page.tsx")).HelpPage);
const HandbookPage = lazyPage("Handbook", async () => (await import("./handbook/handbook-page.tsx")).HandbookPage);
const PlaygroundPage = lazyPage("Playground", async () => (await import("./start/playground-page.tsx")).PlaygroundPage);
const ExplainPage = lazyPage("Explain a request", async () => (await import("./start/explain-page.tsx")).ExplainPage);
const RunningQuestion = lazyPart(
  async () => (await import("./keys/running-question.tsx")).RunningQuestion,
  (state) => <FailedDialog {...state} title="API keys" onClose={closeRunningQuestion} />,
);

function Console(): JSX.Element {
  tickWhileVisible();
  syncThemeAcrossTabs();
  syncTimeZoneAcrossTabs();
  syncSessionAcrossTabs(tryResumeSession);
  forgetEndedSession();
  return (
    <QueryClientProvider client={queryClient}>
      <Router>
        <Route path="/login" component={LoginPage} />
        <Route path="/me" component={OwnKeyPage} />
        <Route path="/" component={RequireSession}>
          <Route path="/" component={OverviewPage} />
          <Route path="/keys" component={KeysPage} />
          <Route path="/keys/teams" component={TeamsPage} />
          <Route path="/keys/teams/:id" component={TeamPage} />
          <Route path="/keys/:id" component={KeyPage} />
          <Route path="/requests" component={RequestsPage} />
          <Route path="/requests/running" component={RunningPage} />
          <Route path="/requests/latency" component={LatencyPage} />
          <Route path="/usage" component={UsagePage} />
          <Route path="/gpus" component={GpusPage} />
          <Route path="/settings" component={SettingsPage}>
            <Route path="/" component={KeyPolicyPanel} />
          </Route>
          <Route path="/backends" component={BackendsPage} />
          <Route path="/settings/backends" component={() => <Navigate href="/backends" />} />
          <Route path="/settings/prices" component={PricesPage} />
          <Route path="/settings/account" component={AccountPage} />
          <Route path="/settings/account/changes" component={ChangesPage} />
          <Route path="/help" component={HelpPage} />
          <Route path="/help/handbook/:chapter?" component={HandbookPage} />
          <Route path="/help/playground" component={PlaygroundPage} />
          <Route path="/help/explain" component={ExplainPage} />
          <Route path="/gpus/:id" component={GpuPage} />
          <Route path="*" component={NotFoundPage} />
        </Route>
      </Router>
      <NewKeyDialogs />
      <Show when={runningQuestion()}>
        <RunningQuestion />
      </Show>
      <Toasts />
    </QueryClientProvider>
  );
}

/**
 * Forgets what a session has left in memory when it ends: by a logout, here or in another tab, or because the server no
 * longer accepts it. While a session is being resumed there is none yet, and the page already loads its data.
 */
function forgetEndedSession(): void {
  createEffect<Session | undefined>((before) => {
    const current = session();
    if (before !== undefined && current === undefined) {
      setPlaygroundKey("");
      // The pages are gone by now. What is still shown is in a dialog with a secret, which outlives the session.
      queryClient.removeQueries({ type: "inactive" });
      queryClient.getMutationCache().clear();
    }
    return current;
  }, undefined);
}

/** The router throws at a path or a fragment that cannot be decoded, and the page would stay blank. */
function repairAddress(): void {
  const { pathname, search, hash } = location;
  try {
    decodeURIComponent(pathname + hash);
  } catch {
    const [path, fragment] = [pathname, hash].map((text) => text.replaceAll("%", "%25"));
    history.replaceState(history.state, "", `${path}${search}${fragment}`);
  }
}

repairAddress();
const root = document.querySelector("#root");
if (root !== null) render(() => <Console />, root);
