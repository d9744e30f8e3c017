import { Navigate, type RouteSectionProps, useLocation, useNavigate } from "@solidjs/router";
import { createEffect, createMemo, createSignal, type JSX, onCleanup, onMount, Show } from "solid-js";
import { ApiError } from "../client.ts";
import { isMember, mayHaveSession, type Session, session } from "../lib/session.ts";
import { Button } from "../ui/controls.tsx";
import { Logo } from "../ui/icon.tsx";
import { SessionEndedDialog } from "./session-ended-dialog.tsx";
import { resumeSession } from "./session-of-cookie.ts";
import { Shell } from "./shell.tsx";

/** The interval of the pages' own queries. */
const retryMs = 5000;

/**
 * Shows the page with a session, and opens the login page without one; the current address becomes `?next=`. If the
 * browser may have a session, the page renders and loads its data while the session is resumed. Where leaving the page
 * would lose what is entered in a form, the password is asked in place.
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
  const [hasLeft, setHasLeft] = createSignal(false);
  const last = createMemo((before: Session | undefined) => session() ?? before, undefined);
  // A memo, since it has to look before the page is gone. Only for a known user: the dialog does not ask for the name.
  const asksPassword = createMemo((before: boolean) => {
    if (resuming() || session() !== undefined || last() === undefined || hasLeft()) return false;
    return before || hasEntries();
  }, false);
  createEffect(() => session() !== undefined && setHasLeft(false));
  createEffect(() => {
    if (resuming() || session() !== undefined || asksPassword()) return;
    const here = location.pathname + location.search;
    navigate(here === "/" ? "/login" : `/login?next=${encodeURIComponent(here)}`, { replace: true });
  });

  return (
    <Show
      when={problem()}
      fallback={
        <Show when={!isMember()} fallback={<Navigate href="/me" />}>
          <Show when={resuming() || session() !== undefined || asksPassword()}>
            <Shell {...props} onLeave={setHasLeft} />
            <Show when={asksPassword() && last()}>
              {(ended) => <SessionEndedDialog of={ended()} onLeave={() => setHasLeft(true)} />}
            </Show>
          </Show>
        </Show>
      }
    >
      {(message) => <ResumeProblem message={message()} onRetry={() => void resume()} />}
    </Show>
  );
}

/** Whether a dialog with a form is open, or something is entered in a form of the page that takes no secret. */
const hasEntries = (): boolean =>
  document.querySelector("dialog[open] form") !== null ||
  [...document.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(entries)].some(
    ({ value, defaultValue }) => value !== defaultValue,
  );
const entries = "main form:not(:has([type=password])) :is(input, textarea)";

function ResumeProblem(props: { message: string; onRetry: () => void }): JSX.Element {
  return (
    <main class="login">
      <div class="problem">
        <Logo />
        <h1>Tollgate</h1>
        <div class="notice" role="alert" data-tone="error">
          <p>{props.message}.</p>
          <Button onClick={() => props.onRetry()}>Try again</Button>
        </div>
      </div>
    </main>
  );
}
