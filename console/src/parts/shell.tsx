import { A, type Location, type Navigator, type RouteSectionProps, useNavigate } from "@solidjs/router";
import { createSignal, For, type JSX, Show } from "solid-js";
import { ApiError, api, responseBody } from "../client.ts";
import { queryClient } from "../data/queries.ts";
import { endSession, session } from "../data/session.ts";
import { listenForShortcuts, type Shortcut, shortcuts } from "./shortcuts.ts";
import { chooseTheme, theme, themes } from "../data/theme.ts";
import { SegmentedControl } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon, Logo } from "./icon.tsx";
import { showToast } from "./toasts.tsx";

const places = [
  { href: "/", label: "Overview", icon: "overview" },
  { href: "/keys", label: "API keys", icon: "keys" },
  { href: "/usage", label: "Usage", icon: "usage" },
  { href: "/gpus", label: "GPUs", icon: "gpus" },
] as const;

const themeOptions = themes.map((value) => ({
  value,
  label: `${value[0]?.toUpperCase()}${value.slice(1)} theme`,
  icon: value,
}));

/** The frame around every page behind the login. */
export function Shell(props: RouteSectionProps): JSX.Element {
  const navigate = useNavigate();
  const [helping, setHelping] = createSignal(false);

  const run: Record<Shortcut, () => void> = {
    "g o": () => navigate("/"),
    "g k": () => navigate("/keys"),
    "g u": () => navigate("/usage"),
    "g g": () => navigate("/gpus"),
    n: () => openNewKey(props.location, navigate),
    "/": focusFilter,
    "?": () => setHelping(true),
  };
  listenForShortcuts((shortcut) => run[shortcut]());

  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the page
      </a>
      <header class="side">
        <A class="brand" href="/" end activeClass="" inactiveClass="">
          <Logo />
          Tollgate
        </A>
        <nav aria-label="Pages">
          <For each={places}>
            {(place) => (
              <A href={place.href} end={place.href === "/"}>
                <Icon name={place.icon} />
                {place.label}
              </A>
            )}
          </For>
        </nav>
        <div class="side-foot">
          <SegmentedControl label="Theme" options={themeOptions} value={theme()} onChange={chooseTheme} />
          <button
            class="icon-button"
            type="button"
            aria-label="Keyboard shortcuts"
            title="Keyboard shortcuts (?)"
            onClick={() => setHelping(true)}
          >
            <Icon name="keyboard" />
          </button>
          <button
            class="icon-button"
            type="button"
            aria-label={`Log out ${session()?.username}`}
            title={`Log out ${session()?.username}`}
            onClick={() => void logOut()}
          >
            <Icon name="logout" />
          </button>
        </div>
      </header>
      {props.children}
      <Show when={helping()}>
        <HelpDialog onClose={() => setHelping(false)} />
      </Show>
    </div>
  );
}

function HelpDialog(props: { onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => props.onClose()}>
      <dl class="shortcuts">
        <For each={shortcuts}>
          {(shortcut) => (
            <div>
              <dt>{shortcut.does}</dt>
              <dd>
                <For each={shortcut.keys}>{(key) => <kbd>{key}</kbd>}</For>
              </dd>
            </div>
          )}
        </For>
      </dl>
      <p class="hint">On a chart: arrow keys move, Shift selects, Enter zooms, Escape resets.</p>
      <div class="dialog-actions">
        <button class="button" type="button" onClick={() => props.onClose()}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

async function logOut(): Promise<void> {
  try {
    await responseBody(api.logout.post());
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return;
    showToast(`Still logged in: ${error instanceof Error ? error.message : String(error)}`, "error");
    return;
  }
  endSession();
  queryClient.clear();
}

/** Over the page of keys, if that is what is shown: with its filter, and without a step in the history. */
function openNewKey({ pathname, search }: Location, navigate: Navigator): void {
  const isThere = pathname === "/keys";
  const parameters = new URLSearchParams(isThere ? search : "");
  parameters.set("new", "1");
  navigate(`/keys?${parameters.toString()}`, { replace: isThere });
}

function focusFilter(): void {
  document.querySelector<HTMLInputElement>("[data-shortcut=filter]")?.focus();
}

/** By hand: a plain `#main` would be a new address, and drop what the address holds. */
function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#main")?.focus();
}
