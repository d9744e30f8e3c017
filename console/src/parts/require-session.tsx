import { type RouteSectionProps, useLocation, useNavigate } from "@solidjs/router";
import { createEffect, createSignal, type JSX, onCleanup, onMount, Show } from "solid-js";
import { ApiError } from "../client.ts";
import { resumeSession } from "../data/resume-session.ts";
import { mayHaveSession, session } from "../data/session.ts";
import { Shell } from "./shell.tsx";

/** As pages do that show what they load. */
const askAgainMs = 5000;

/**
 * Lets through who has a session; sends everybody else to the login page, with the way back in the address. Who may have
 * one sees the page at once, which loads its data while the session is asked for.
 */
export function Gate(props: RouteSectionProps): JSX.Element {
  const location = useLocation();
  const navigate = useNavigate();
  const [asking, setAsking] = createSignal(session() === undefined && mayHaveSession());
  const [problem, setProblem] = createSignal<string>();

  let next: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(next));
  const ask = async (): Promise<void> => {
    clearTimeout(next);
    try {
      await resumeSession();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) {
        setProblem(error instanceof Error ? error.message : String(error));
        next = setTimeout(() => void ask(), askAgainMs);
        return;
      }
    }
    setProblem(undefined);
    setAsking(false);
  };
  onMount(() => {
    if (asking()) void ask();
  });
  createEffect(() => {
    if (asking() || session() !== undefined) return;
    const here = location.pathname + location.search;
    navigate(here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`, { replace: true });
  });

  return (
    <Show
      when={problem()}
      fallback={
        <Show when={asking() || session() !== undefined}>
          <Shell {...props} />
        </Show>
      }
    >
      {(text) => (
        <main class="login">
          <div class="notice" role="alert" data-tone="error">
            <p>{text()}.</p>
            <button class="button" type="button" onClick={() => void ask()}>
              Try again
            </button>
          </div>
        </main>
      )}
    </Show>
  );
}
