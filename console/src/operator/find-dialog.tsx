import { A, useNavigate } from "@solidjs/router";
import { useQuery } from "@tanstack/solid-query";
import { createMemo, createSignal, For, type JSX, onCleanup, Show } from "solid-js";
import { api, responseBody } from "../client.ts";
import { keepPreviousData, useHasUsers, useKeyNamesQuery, useTeamsQuery } from "../queries.ts";
import { FilterField } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { useBackendsQuery } from "./backend-queries.ts";
import { findThings, type Found } from "./find-things.ts";
import { shortcuts } from "./shortcuts.ts";
import "../styles/lazy-pages.css";

/** What is typed is asked of the server after so long without a letter. */
const typingMs = 200;

/** Finds a request, key, user, team, model or backend, and opens it. Until something is typed, it lists the shortcuts. */
export function FindDialog(props: { onClose: () => void }): JSX.Element {
  const navigate = useNavigate();
  const [text, setText] = createSignal("");
  const [asked, setAsked] = createSignal("");
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));
  const type = (typed: string): void => {
    setText(typed);
    clearTimeout(timer);
    timer = setTimeout(() => setAsked(typed.trim()), typingMs);
  };

  const keys = useKeyNamesQuery();
  const teams = useTeamsQuery();
  const backends = useBackendsQuery();
  const hasUsers = useHasUsers();
  const users = useQuery(() => ({
    enabled: hasUsers() && asked() !== "",
    queryKey: ["users", "found", asked()],
    queryFn: async () => (await responseBody(api.users.get({ query: { q: asked(), limit: 5 } }))).users,
    placeholderData: keepPreviousData,
  }));
  // Only what the log has goes into the address: anything else may be a key.
  const requests = useQuery(() => ({
    enabled: /^\S{8,512}$/.test(asked()),
    queryKey: ["request-id", asked()],
    queryFn: async () => (await responseBody(api.requests.get({ query: { request_id: asked(), limit: 1 } }))).requests,
  }));
  // What is still found stays the same object, so that its row keeps the focus and a press of the mouse.
  const found = createMemo<Found[]>(
    (before) =>
      findThings(text(), {
        keys: keys.data ?? [],
        teams: teams.data ?? [],
        users: (asked() !== "" && users.data) || [],
        backends: backends.data?.backends ?? [],
        requestId: text().trim() === asked() ? requests.data?.[0]?.request_id : undefined,
      }).map((one) => before.find(({ href, label }) => href === one.href && label === one.label) ?? one),
    [],
  );
  const isAsking = (): boolean => text().trim() !== asked() || users.isFetching || requests.isFetching;
  const open = (event: SubmitEvent): void => {
    event.preventDefault();
    const [first] = found();
    if (first === undefined) return;
    props.onClose();
    navigate(first.href);
  };
  return (
    <Dialog title="Find" onClose={() => props.onClose()}>
      <form onSubmit={open}>
        <FilterField label="Request id, key, user, team, model or backend" value={text()} onInput={type} isFirst />
      </form>
      <Show when={text().trim() !== ""} fallback={<Shortcuts />}>
        <ul class="found" aria-label="Found">
          <For
            each={found()}
            fallback={<li role="status">{isAsking() ? "Looking…" : "Nothing has this name or id"}</li>}
          >
            {(one) => (
              <li>
                <A href={one.href} onClick={() => props.onClose()}>
                  <bdi>{one.label}</bdi> <span>{one.kind}</span>
                </A>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </Dialog>
  );
}

const Shortcuts = (): JSX.Element => (
  <>
    <h3>Keyboard shortcuts</h3>
    <dl class="shortcuts">
      <For each={shortcuts}>
        {(shortcut) => (
          <div>
            <dt>{shortcut.label}</dt>
            <dd>
              <For each={shortcut.keys}>{(key) => <kbd>{key}</kbd>}</For>
            </dd>
          </div>
        )}
      </For>
    </dl>
    <p class="hint">On a chart, the arrow keys move, Shift selects, Enter zooms and Escape resets.</p>
    <p class="hint">
      For scripts: the{" "}
      <a href="/api/openapi.json" target="_blank">
        description of the API
      </a>{" "}
      (OpenAPI).
    </p>
  </>
);
