import { A, useNavigate } from "@solidjs/router";
import { createEffect, type JSX, onMount, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import { mayHaveSession, safeRedirect, session } from "../lib/session.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { LabelledInput } from "../ui/controls.tsx";
import { Icon, Logo } from "../ui/icon.tsx";
import { createLogin, type Login } from "./login.ts";
import { tryResumeSession } from "./session-of-cookie.ts";

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
  const login = createLogin();
  let username: HTMLInputElement | undefined;
  let password: HTMLInputElement | undefined;
  onMount(() => username?.focus());

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const hasSession = await login.submit(username?.value ?? "", password?.value ?? "");
    if (!hasSession) password?.select();
  };

  return (
    <form onSubmit={(event) => void submit(event)} aria-labelledby="login-title">
      <Logo />
      <h1 id="login-title">Tollgate</h1>
      <Show when={!isSecureContext}>
        <PlainHttpNotice />
      </Show>
      <LabelledInput
        label="Username"
        class="field"
        ref={username}
        name="username"
        autocomplete="username"
        autocapitalize="none"
        spellcheck={false}
        required
      />
      <LabelledInput
        label="Password"
        class="field"
        ref={password}
        name="password"
        type="password"
        autocomplete="current-password"
        required
      />
      <FormProblem login={login} />
      <button class="button primary wide" type="submit" disabled={login.busy() || login.secondsLeft() > 0}>
        {login.busy() ? "Logging in…" : "Log in"}
      </button>
      <p class="hint">
        The initial password is in the server’s log of its first start. <A href="/me">See the limits of an API key</A>
      </p>
    </form>
  );
}

export function FormProblem(props: { login: Login }): JSX.Element {
  return (
    <div class="form-problem" role="alert">
      <Show
        when={props.login.secondsLeft() > 0}
        fallback={<Show when={props.login.problem()}>{(text) => <p class="form-error">{text()}</p>}</Show>}
      >
        <p class="form-error">
          Too many attempts. <span aria-live="off">Try again in {plural(props.login.secondsLeft(), "second")}.</span>
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
