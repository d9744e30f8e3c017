import { Route, Router } from "@solidjs/router";
import { QueryClientProvider } from "@tanstack/solid-query";
import type { JSX } from "solid-js";
import { render } from "solid-js/web";
import { queryClient } from "./data/queries.ts";
import { tryResumeSession } from "./data/resume-session.ts";
import { tickWhileVisible } from "./data/server-clock.ts";
import { syncSessionAcrossTabs } from "./data/session.ts";
import { syncThemeAcrossTabs } from "./data/theme.ts";
import { syncTimeZoneAcrossTabs } from "./data/time-zone.ts";
import { GpusPage } from "./pages/gpus.tsx";
import { KeysPage } from "./pages/keys.tsx";
import { LoginPage } from "./pages/login.tsx";
import { OwnKeyPage } from "./pages/me.tsx";
import { NotFoundPage } from "./pages/not-found.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { UsagePage } from "./pages/usage.tsx";
import { NewKeyDialogs } from "./parts/new-key-dialog.tsx";
import { RequireSession } from "./parts/require-session.tsx";
import { Toasts } from "./parts/toasts.tsx";
import "./styles/index.css";

function Console(): JSX.Element {
  tickWhileVisible();
  syncThemeAcrossTabs();
  syncTimeZoneAcrossTabs();
  syncSessionAcrossTabs(tryResumeSession);
  return (
    <QueryClientProvider client={queryClient}>
      <Router>
        <Route path="/login" component={LoginPage} />
        <Route path="/me" component={OwnKeyPage} />
        <Route path="/" component={RequireSession}>
          <Route path="/" component={OverviewPage} />
          <Route path="/keys" component={KeysPage} />
          <Route path="/usage" component={UsagePage} />
          <Route path="/gpus" component={GpusPage} />
          <Route path="*" component={NotFoundPage} />
        </Route>
      </Router>
      <NewKeyDialogs />
      <Toasts />
    </QueryClientProvider>
  );
}

const root = document.querySelector("#root");
if (root !== null) render(() => <Console />, root);
