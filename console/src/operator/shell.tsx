// The frame of all pages (here), login, settings, backends, prices and account.
//
// It keeps true: without a session the login page opens; where leaving a page would lose what is entered in a form, the
// password is asked in place (`require-session.tsx`). Secrets of the settings never reach the browser. Settings are
// shown and not changed: they are the server's environment.

import { A, type Location, type Navigator, type RouteSectionProps, useNavigate } from "@solidjs/router";
import { useQuery } from "@tanstack/solid-query";
import { createEffect, createSignal, For, type JSX, Show } from "solid-js";
import { api, ApiError, responseBody } from "../client.ts";
import { saveCount, savedCount } from "../lib/browser-settings.ts";
import { endSession, session } from "../lib/session.ts";
import { chooseTheme, theme, themes } from "../lib/theme.ts";
import { chooseTimeZone, timeZone, timeZoneOptions } from "../lib/time-zone.ts";
import { showToast } from "../lib/toasts.ts";
import { LabelledSelect, SegmentedControl } from "../ui/controls.tsx";
import { Icon, Logo } from "../ui/icon.tsx";
import { FailedDialog, lazyPart } from "../ui/lazy.tsx";
import { Popover } from "../ui/menu.tsx";
import { useShortcuts, type Shortcut } from "./shortcuts.ts";

const FindDialog = lazyPart(
  async () => (await import("./find-dialog.tsx")).FindDialog,
  (state, props) => <FailedDialog {...state} title="Find" onClose={() => props.onClose()} />,
);

const navigation = [
  { href: "/", label: "Overview", icon: "overview" },
  { href: "/requests", label: "Requests", icon: "requests" },
  { href: "/keys", label: "API keys", icon: "keys" },
  { href: "/usage", label: "Usage", icon: "usage" },
  { href: "/backends", label: "Backends", icon: "gpus" },
  { href: "/settings", label: "Settings", icon: "settings" },
  { href: "/help", label: "Help", icon: "help" },
] as const;

const themeOptions = themes.map((value) => ({
  value,
  label: `${value[0]?.toUpperCase()}${value.slice(1)} theme`,
  icon: value,
}));

interface ShellProps extends RouteSectionProps {
  /** Called with true when the user logs out, and with false if that fails. */
  onLeave: (hasLeft: boolean) => void;
}

/** The frame around every page but the login page. */
export function Shell(props: ShellProps): JSX.Element {
  const navigate = useNavigate();
  const [finding, setFinding] = createSignal(false);
  const hasFleet = useHasFleet();

  const actions: Record<Shortcut, () => void> = {
    "g o": () => navigate("/"),
    "g r": () => navigate("/requests"),
    "g k": () => navigate("/keys"),
    "g u": () => navigate("/usage"),
    "g b": () => navigate("/backends"),
    "g s": () => navigate("/settings"),
    "g h": () => navigate("/help"),
    n: () => openNewKey(props.location, navigate),
    "/": () => setFinding(true),
    "?": () => setFinding(true),
  };
  // While the box comes, what is typed is for it.
  useShortcuts((shortcut) => actions[shortcut](), finding);

  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to main content
      </a>
      <header class="side">
        <A class="brand" href="/" end activeClass="" inactiveClass="">
          <Logo />
          Tollgate
        </A>
        <button class="button find" type="button" onClick={() => setFinding(true)}>
          <Icon name="search" />
          <span>Find</span>
          <kbd aria-hidden="true">/</kbd>
        </button>
        <nav aria-label="Pages">
          <For each={navigation.filter(({ href }) => href !== "/backends" || hasFleet())}>
            {(page) => (
              <A
                href={page.href}
                end={page.href === "/"}
                classList={{ active: page.href === "/backends" && props.location.pathname.startsWith("/gpus") }}
              >
                <Icon name={page.icon} />
                {page.label}
              </A>
            )}
          </For>
        </nav>
        <SideFoot onLeave={props.onLeave} />
      </header>
      {props.children}
      <Show when={finding()}>
        <FindDialog onClose={() => setFinding(false)} />
      </Show>
    </div>
  );
}

const getFleet = async (): Promise<number> => {
  const [{ backends }, gpus] = await Promise.all([
    responseBody(api.backends.get()),
    responseBody(api["gpu-stats"].get()),
  ]);
  return Math.max(0, backends.length - 1) + gpus.length;
};

/** Whether there are several backends, or GPUs: a single backend needs no entry. What is known stays until it is asked. */
function useHasFleet(): () => boolean {
  const fleet = useQuery(() => ({ queryKey: ["fleet"], queryFn: getFleet, staleTime: 60_000 }));
  createEffect(() => fleet.data !== undefined && saveCount("fleet", fleet.data));
  return () => (fleet.data ?? savedCount("fleet", 0)) > 0;
}

/** What belongs to who is logged in, and to this browser. */
function SideFoot(props: Pick<ShellProps, "onLeave">): JSX.Element {
  const name = (): string => session()?.username ?? "";
  return (
    <div class="side-foot">
      <Popover label={`Menu of ${name()}`.trimEnd()} text={name() || "…"}>
        <TimeZoneSelect />
        <SegmentedControl label="Theme" options={themeOptions} value={theme()} onChange={chooseTheme} />
        {/* On a phone, the navigation has no space for it. */}
        <A
          class="menu-item"
          href="/help"
          onClick={({ currentTarget }) => currentTarget.closest<HTMLElement>("[popover]")?.hidePopover()}
        >
          Help
        </A>
        <button class="menu-item" type="button" onClick={() => void logOut(props.onLeave)}>
          Log out {name()}
        </button>
      </Popover>
    </div>
  );
}

const TimeZoneSelect = (): JSX.Element => (
  <div title="Clock times are in this zone. Days are Seoul’s (KST) in any.">
    <LabelledSelect
      label="Time zone"
      class="zone"
      options={timeZoneOptions(Date.now())}
      value={timeZone()}
      onChange={chooseTimeZone}
    />
  </div>
);

/** @param onLeave called with true before, and with false if that fails */
export async function logOut(onLeave: ShellProps["onLeave"]): Promise<void> {
  onLeave(true);
  try {
    await responseBody(api.logout.post());
  } catch (error) {
    // The session had already ended.
    if (error instanceof ApiError && error.status === 401) return;
    onLeave(false);
    showToast(`Could not log out: ${error instanceof Error ? error.message : String(error)}`, "error");
    return;
  }
  endSession();
}

/** Opens the dialog on the keys page. If that page is open, its filter stays and no history entry is added. */
function openNewKey({ pathname, search }: Location, navigate: Navigator): void {
  const isOpen = pathname === "/keys";
  const parameters = new URLSearchParams(isOpen ? search : "");
  parameters.set("new", "1");
  navigate(`/keys?${parameters.toString()}`, { replace: isOpen });
}

/** The link's own `#main` would replace the URL's query. */
function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}
