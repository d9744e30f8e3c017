import { A } from "@solidjs/router";
import { For, type JSX, onMount } from "solid-js";

const sections = {
  requests: [
    { href: "/requests", label: "Log" },
    { href: "/requests/running", label: "Running now" },
    { href: "/requests/latency", label: "Latency and failures" },
  ],
  keys: [
    { href: "/keys", label: "Keys" },
    { href: "/keys/teams", label: "Teams" },
  ],
  backends: [
    { href: "/backends", label: "Backends" },
    { href: "/gpus", label: "GPUs" },
  ],
  settings: [
    { href: "/settings", label: "Server" },
    { href: "/settings/prices", label: "Prices" },
    { href: "/settings/account", label: "Account" },
    { href: "/settings/account/changes", label: "Changes" },
  ],
  help: [
    { href: "/help", label: "Quick start" },
    { href: "/help/handbook", label: "Handbook" },
    { href: "/help/playground", label: "Playground" },
    { href: "/help/explain", label: "Explain a request" },
  ],
} as const;

/** Links between the pages under one entry of the navigation. */
export function SectionTabs(props: { section: keyof typeof sections; label: string }): JSX.Element {
  let tabs: HTMLElement | undefined;
  // On a phone they scroll. Scrolling the tab itself into view would scroll the page too.
  onMount(() => {
    const current = tabs?.querySelector<HTMLElement>("[aria-current]");
    if (!tabs || !current) return;
    tabs.scrollLeft = current.offsetLeft + current.offsetWidth - tabs.offsetLeft - tabs.clientWidth;
  });
  return (
    <nav class="tabs" aria-label={props.label} ref={tabs}>
      <For each={sections[props.section]}>
        {(tab) => (
          <A href={tab.href} end>
            {tab.label}
          </A>
        )}
      </For>
    </nav>
  );
}
