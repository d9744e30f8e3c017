import { type RouteSectionProps, useLocation, useNavigate } from "@solidjs/router";
import { createEffect, createSignal, type JSX, onCleanup, onMount, Show } from "solid-js";
import { ApiError } from "../client.ts";
import { resumeSession } from "../data/resume-session.ts";
import { mayHaveSession, session } from "../data/session.ts";
import { Shell } from "./shell.tsx";

/** As pages do that show what they load. */
const retryMs = 5000;

/**
 * Lets through who has a session; sends everybody else to the login page, with the way back in the address. Who may have
 * one sees the page at once, which loads its data while the session is asked for.
 */
export function RequireSession(props: RouteSectionProps): JSX.Element {
  const location = useLocation();
  const navigate = useNavigate();
  const [resuming, setResuming] = createSignal(session() === undefined && mayHaveSession());
  const [problem, setProblem] = createSignal<string>();

  let retryTimer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(retryTimer));
  const resume = async (): Promise<void> => {
    clearTimeout(retryTimer);
    try {
      await resumeSession();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) {
        setProblem(error instanceof Error ? error.message : String(error));
        retryTimer = setTimeout(() => void resume(), retryMs);
        return;
      }
    }
    setProblem(undefined);
    setResuming(false);
  };
  onMount(() => {
    if (resuming()) void resume();
  });
  createEffect(() => {
    if (resuming() || session() !== undefined) return;
    const here = location.pathname + location.search;
    navigate(here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`, { replace: true });
  });

  return (
    <Show
      when={problem()}
      fallback={
        <Show when={resuming() || session() !== undefined}>
          <Shell {...props} />
        </Show>
      }
    >
      {(text) => (
        <main class="login">
          <div class="notice" role="alert" data-tone="error">
            <p>{text()}.</p>
            <button class="button" type="button" onClick={() => void resume()}>
              Try again
            </button>
          </div>
        </main>
      )}
    </Show>
  );
}
