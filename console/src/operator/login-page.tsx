import { A, useNavigate } from "@solidjs/router";
import { createEffect, createSignal, type JSX, onMount, Show } from "solid-js";
import { api, ApiError, responseBody } from "../client.ts";
import { plural } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { beginSession, mayHaveSession, safeRedirect, session } from "../lib/session.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { Icon, Logo } from "../ui/icon.tsx";
import { tryResumeSession } from "./resume-session.ts";

/** Opens `?next=` as soon as there is a session. */
export function LoginPage(): JSX.Element {
  const [parameters] = useUrlParameters<"next">();
  const navigate = useNavigate();
  onMount(() => {
    document.title = "Log in · Tollgate";
    if (mayHaveSession()) tryResumeSession();
  });
  createEffect(() => session() !== undefined && navigate(safeRedirect(parameters.next), { replace: true }));
  return (
    <main class="login">
      <LoginForm />
    </main>
  );
}

function LoginForm(): JSX.Element {
  const [problem, setProblem] = createSignal<string>();
  const [busy, setBusy] = createSignal(false);
  const [blockedUntil, setBlockedUntil] = createSignal(0);
  const secondsLeft = (): number => Math.max(0, Math.ceil((blockedUntil() - now()) / 1000));
  let username: HTMLInputElement | undefined;
  let password: HTMLInputElement | undefined;
  onMount(() => username?.focus());

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await logIn(username?.value ?? "", password?.value ?? "");
    } catch (error) {
      showProblem(error);
    } finally {
      setBusy(false);
    }
  };

  const showProblem = (error: unknown): void => {
    const waitSeconds = error instanceof ApiError && error.status === 429 ? error.retryAfterSeconds : 0;
    if (waitSeconds > 0) setBlockedUntil(now() + waitSeconds * 1000);
    setProblem(error instanceof ApiError ? loginProblem(error) : String(error));
    password?.select();
  };

  return (
    <form onSubmit={(event) => void submit(event)} aria-labelledby="login-title">
      <Logo />
      <h1 id="login-title">Tollgate</h1>
      <Show when={!isSecureContext}>
        <PlainHttpNotice />
      </Show>
      <label class="field">
        <span>Username</span>
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
      <FormProblem problem={problem()} secondsLeft={secondsLeft()} />
      <button class="button primary wide" type="submit" disabled={busy() || secondsLeft() > 0}>
        {busy() ? "Logging in…" : "Log in"}
      </button>
      <p class="hint">
        The initial password is in the server’s log of its first start. <A href="/me">See the limits of an API key</A>
      </p>
    </form>
  );
}

function FormProblem(props: { problem: string | undefined; secondsLeft: number }): JSX.Element {
  return (
    <div class="form-problem" role="alert">
      <Show
        when={props.secondsLeft > 0}
        fallback={<Show when={props.problem}>{(text) => <p class="form-error">{text()}</p>}</Show>}
      >
        <p class="form-error">
          Too many attempts. <span aria-live="off">Try again in {plural(props.secondsLeft, "second")}.</span>
        </p>
      </Show>
    </div>
  );
}

/** Browsers keep a Secure cookie only over HTTPS and on localhost. Without this notice, a login would fail silently. */
function PlainHttpNotice(): JSX.Element {
  return (
    <div class="notice" data-tone="warning" role="note">
      <Icon name="warning" />
      <p>
        This page was loaded over plain HTTP. Browsers keep the session cookie only over HTTPS and on localhost, so a
        login here does not last. Open the console over HTTPS or through a tunnel, such as{" "}
        <code>ssh -L 8080:localhost:8080 {location.hostname}</code>.
      </p>
    </div>
  );
}

async function logIn(username: string, password: string): Promise<void> {
  const body = await responseBody(api.login.post({ username, password }));
  await checkCookie();
  beginSession({ username: body.username, csrfToken: body.csrf_token });
}

/** Some browsers drop a Secure cookie even on localhost. */
async function checkCookie(): Promise<void> {
  try {
    await responseBody(api.me.get());
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw new ApiError(0, cookieDropped);
    throw error;
  }
}

const cookieDropped =
  "The password is correct, but the browser did not keep the session cookie. Open this page over HTTPS, or on localhost in another browser";

function loginProblem({ status, message }: ApiError): string {
  if (status === 401) return "Wrong username or password.";
  if (status === 429) return "Too many attempts. Try again later.";
  return `${message}.`;
}
