import { useNavigate, useSearchParams } from "@solidjs/router";
import { createEffect, createSignal, type JSX, onMount, Show } from "solid-js";
import { ApiError, api, responseBody } from "../client.ts";
import { plural } from "../data/format.ts";
import { now } from "../data/server-clock.ts";
import { Icon, Logo } from "../parts/icon.tsx";
import { tryResumeSession } from "../data/resume-session.ts";
import { beginSession, mayHaveSession, safeRedirect, session } from "../data/session.ts";

/** Leads to `?next=` once there is a session. */
export function LoginPage(): JSX.Element {
  const [parameters] = useSearchParams<{ next?: string }>();
  const navigate = useNavigate();
  const [problem, setProblem] = createSignal<string>();
  const [busy, setBusy] = createSignal(false);
  const [blockedUntil, setBlockedUntil] = createSignal(0);
  let username: HTMLInputElement | undefined;
  let password: HTMLInputElement | undefined;

  const secondsLeft = (): number => Math.max(0, Math.ceil((blockedUntil() - now()) / 1000));
  onMount(() => {
    document.title = "Log in · Tollgate";
    username?.focus();
    if (mayHaveSession()) tryResumeSession();
  });
  createEffect(() => session() !== undefined && navigate(safeRedirect(parameters.next), { replace: true }));

  const logIn = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const begun = await responseBody(
        api.login.post({ username: username?.value ?? "", password: password?.value ?? "" }),
      );
      await expectCookie();
      beginSession({ username: begun.username, csrfToken: begun.csrf_token });
    } catch (error) {
      refuse(error);
    } finally {
      setBusy(false);
    }
  };

  const refuse = (error: unknown): void => {
    const wait = error instanceof ApiError && error.status === 429 ? error.retryAfterSeconds : 0;
    if (wait > 0) setBlockedUntil(now() + wait * 1000);
    setProblem(error instanceof ApiError ? loginProblem(error) : String(error));
    password?.select();
  };

  return (
    <main class="login">
      <form onSubmit={(event) => void logIn(event)} aria-labelledby="login-title">
        <Logo />
        <h1 id="login-title">Tollgate</h1>
        <Show when={!isSecureContext}>
          <PlainHttpNotice />
        </Show>
        <label class="field">
          <span>User name</span>
          <input
            ref={username}
            name="username"
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
          />
        </label>
        <label class="field">
          <span>Password</span>
          <input ref={password} name="password" type="password" autocomplete="current-password" required />
        </label>
        <div class="form-problem" role="alert">
          <Show
            when={secondsLeft() > 0}
            fallback={<Show when={problem()}>{(text) => <p class="form-error">{text()}</p>}</Show>}
          >
            <p class="form-error">
              Too many attempts. <span aria-live="off">Try again in {plural(secondsLeft(), "second")}.</span>
            </p>
          </Show>
        </div>
        <button class="button primary wide" type="submit" disabled={busy() || secondsLeft() > 0}>
          {busy() ? "Logging in…" : "Log in"}
        </button>
        <p class="hint">The first password is in the server’s log, from its first start.</p>
      </form>
    </main>
  );
}

/** A Secure cookie is kept over HTTPS and on localhost alone: without this a login would silently do nothing. */
function PlainHttpNotice(): JSX.Element {
  return (
    <div class="notice" data-tone="warning" role="note">
      <Icon name="warning" />
      <p>
        This page came over plain HTTP, and browsers keep the session cookie only over HTTPS or on localhost: logging in
        here will not last. Open it over HTTPS, or through a tunnel such as{" "}
        <code>ssh -L 8080:localhost:8080 {location.hostname}</code>.
      </p>
    </div>
  );
}

/** Some browsers drop a Secure cookie even from localhost: saying so beats a login that silently does nothing. */
async function expectCookie(): Promise<void> {
  try {
    await responseBody(api.me.get());
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw new ApiError(0, cookieDropped);
    throw error;
  }
}

const cookieDropped =
  "The password is right, but the browser did not keep the session cookie. Open this page over HTTPS, or in another browser on localhost";

function loginProblem({ status, message }: ApiError): string {
  if (status === 401) return "The user name or the password is wrong.";
  if (status === 429) return "Too many attempts. Try again later.";
  return `${message}.`;
}
