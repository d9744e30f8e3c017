import { A } from "@solidjs/router";
import type { JSX } from "solid-js";
import { Page } from "../ui/page.tsx";
import { Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { QuickStart } from "./quick-start.tsx";
import "../styles/lazy-pages.css";

/** How clients reach the backend through this server. */
export const HelpPage = (): JSX.Element => (
  <Page title="Quick start" help="agents" sources={[]}>
    <SectionTabs section="help" label="Help" />
    <Panel title="Connect a client" hint="KEY stands for an API key, which stays in this page’s memory">
      <div class="panel-body">
        <QuickStart />
        <p class="hint">
          A key is shown once, at its <A href="/keys?new=1">creation</A>. For scripts, there is a{" "}
          <a href="/api/openapi.json" target="_blank">
            description of the API
          </a>{" "}
          (OpenAPI).
        </p>
      </div>
    </Panel>
  </Page>
);
