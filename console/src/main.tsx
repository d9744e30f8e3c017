import { Route, Router } from "@solidjs/router";
import { QueryClientProvider } from "@tanstack/solid-query";
import { type JSX, Show } from "solid-js";
import { render } from "solid-js/web";
import { forgetEndedSession } from "./data/forget-session.ts";
import { queryClient } from "./data/queries.ts";
import { tryResumeSession } from "./data/resume-session.ts";
import { closeRunningQuestion, runningQuestion } from "./data/running-responses.ts";
import { tickWhileVisible } from "./data/server-clock.ts";
import { syncSessionAcrossTabs } from "./data/session.ts";
import { syncThemeAcrossTabs } from "./data/theme.ts";
import { syncTimeZoneAcrossTabs } from "./data/time-zone.ts";
import { GpusPage } from "./pages/gpus.tsx";
import { KeysPage } from "./pages/keys.tsx";
import { LoginPage } from "./pages/login.tsx";
import { NotFoundPage } from "./pages/not-found.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { UsagePage } from "./pages/usage.tsx";
import { FailedDialog, lazyPage, lazyPart } from "./parts/lazy.tsx";
import { NewKeyDialogs } from "./parts/new-key-dialog.tsx";
import { RequireSession } from "./parts/require-session.tsx";
import { Toasts } from "./parts/toasts.tsx";
import "./styles/index.css";

// Less often opened, so not part of the first view's script.
const RequestsPage = lazyPage("Requests", async () => (await import("./pages/requests.tsx")).RequestsPage);
const RunningPage = lazyPage("Running now", async () => (await import("./pages/running.tsx")).RunningPage);
const KeyPage = lazyPage("API key", async () => (await import("./pages/key.tsx")).KeyPage);
const OwnKeyPage = lazyPage("Your API key", async () => (await import("./pages/me.tsx")).OwnKeyPage);
const GpuPage = lazyPage("GPU", async () => (await import("./pages/gpu.tsx")).GpuPage);
const SettingsPage = lazyPage("Settings", async () => (await import("./pages/settings.tsx")).SettingsPage);
const PricesPage = lazyPage("Prices", async () => (await import("./pages/prices.tsx")).PricesPage);
const AccountPage = lazyPage("Account", async () => (await import("./pages/account.tsx")).AccountPage);
const HelpPage = lazyPage("Quick start", async () => (await import("./pages/help.tsx")).HelpPage);
const PlaygroundPage = lazyPage("Playground", async () => (await import("./pages/playground.tsx")).PlaygroundPage);
const ExplainPage = lazyPage("Explain a request", async () => (await import("./pages/explain.tsx")).ExplainPage);
const RunningQuestion = lazyPart(
  async () => (await import("./parts/running-question.tsx")).RunningQuestion,
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
          <Route path="/keys/:id" component={KeyPage} />
          <Route path="/requests" component={RequestsPage} />
          <Route path="/requests/running" component={RunningPage} />
          <Route path="/usage" component={UsagePage} />
          <Route path="/gpus" component={GpusPage} />
          <Route path="/settings" component={SettingsPage} />
          <Route path="/settings/prices" component={PricesPage} />
          <Route path="/settings/account" component={AccountPage} />
          <Route path="/help" component={HelpPage} />
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

const root = document.querySelector("#root");
if (root !== null) render(() => <Console />, root);
