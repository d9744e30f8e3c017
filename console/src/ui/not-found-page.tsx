import { A } from "@solidjs/router";
import type { JSX } from "solid-js";
import { Page } from "./page.tsx";
import { EmptyState } from "./panel.tsx";

export function NotFoundPage(): JSX.Element {
  return (
    <Page title="Not found" sources={[]}>
      <section class="panel">
        <EmptyState title="This page does not exist">
          <A class="button" href="/">
            Go to the overview
          </A>
        </EmptyState>
      </section>
    </Page>
  );
}
