// The frame of all pages (here), login, settings, backends, prices and account.
//
// It keeps true: without a session the login page opens; where leaving a page would lose what is entered in a form, the
// password is asked in place (`require-session.tsx`). Secrets of the settings never reach the browser. Settings are
// shown and not changed: they are the server's environment.

import { A, type Location, type Navigator, type RouteSectionProps, useNavigate } from "@solidjs/router";
import { createSignal, For, type JSX, Show } from "solid-js";
import { api, ApiError, responseBody } from "../client.ts";
import { endSession, session } from "../lib/session.ts";
import { chooseTheme, theme, themes } from "../lib/theme.ts";
import { chooseTimeZone, timeZone, timeZoneOptions } from "../lib/time-zone.ts";
import { showToast } from "../lib/toasts.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { Icon, Logo } from "../ui/icon.tsx";
import { listenForShortcuts, type Shortcut, ShortcutsDialog } from "./shortcuts.tsx";

const navigation = [
  { href: "/", label: "Overview", icon: "overview" },
  { href: "/requests", label: "Requests", icon: "requests" },
  { href: "/keys", label: "API keys", icon: "keys" },
  { href: "/usage", label: "Usage", icon: "usage" },
  { href: "/gpus", label: "GPUs", icon: "gpus" },
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
  const [showsShortcuts, setShowsShortcuts] = createSignal(false);

  const actions: Record<Shortcut, () => void> = {
    "g o": () => navigate("/"),
    "g r": () => navigate("/requests"),
    "g k": () => navigate("/keys"),
    "g u": () => navigate("/usage"),
    "g g": () => navigate("/gpus"),
    "g s": () => navigate("/settings"),
    "g h": () => navigate("/help"),
    n: () => openNewKey(props.location, navigate),
    "/": focusFilter,
    "?": () => setShowsShortcuts(true),
  };
  listenForShortcuts((shortcut) => actions[shortcut]());

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
        <nav aria-label="Pages">
          <For each={navigation}>
            {(page) => (
              <A href={page.href} end={page.href === "/"}>
                <Icon name={page.icon} />
                {page.label}
              </A>
            )}
          </For>
        </nav>
        <SideFoot onLeave={props.onLeave} onShowShortcuts={() => setShowsShortcuts(true)} />
      </header>
      {props.children}
      <Show when={showsShortcuts()}>
        <ShortcutsDialog onClose={() => setShowsShortcuts(false)} />
      </Show>
    </div>
  );
}

function SideFoot(props: Pick<ShellProps, "onLeave"> & { onShowShortcuts: () => void }): JSX.Element {
  const logOutLabel = (): string => `Log out ${session()?.username ?? ""}`.trimEnd();
  return (
    <div class="side-foot">
      <TimeZoneSelect />
      <SegmentedControl label="Theme" options={themeOptions} value={theme()} onChange={chooseTheme} />
      <button
        class="icon-button"
        type="button"
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts (?)"
        onClick={() => props.onShowShortcuts()}
      >
        <Icon name="keyboard" />
      </button>
      <button
        class="icon-button"
        type="button"
        aria-label={logOutLabel()}
        title={logOutLabel()}
        onClick={() => void logOut(props.onLeave)}
      >
        <Icon name="logout" />
      </button>
    </div>
  );
}

function TimeZoneSelect(): JSX.Element {
  const options = timeZoneOptions(Date.now());
  return (
    <label class="zone" title="Clock times are in this zone. Days are Seoul’s (KST) in any.">
      <span>Time zone</span>
      <select onChange={({ currentTarget }) => chooseTimeZone(options[currentTarget.selectedIndex]?.value ?? "kst")}>
        <For each={options}>
          {({ value, label }) => (
            <option value={value} selected={value === timeZone()}>
              {label}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

async function logOut(onLeave: ShellProps["onLeave"]): Promise<void> {
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

function focusFilter(): void {
  document.querySelector<HTMLInputElement>("[data-shortcut=filter]")?.focus();
}

/** The link's own `#main` would replace the URL's query. */
function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}
