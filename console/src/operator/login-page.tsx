import { A, useNavigate } from "@solidjs/router";
import { createEffect, createSignal, type JSX, onMount, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import { mayHaveSession, safeRedirect, session } from "../lib/session.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { LabelledInput } from "../ui/controls.tsx";
import { Icon, Logo } from "../ui/icon.tsx";
import { createLogin, findProvider, type Login, type Provider } from "./login.ts";
import { tryResumeSession } from "./session-of-cookie.ts";

/** Opens `?next=` as soon as there is a session. */
export function LoginPage(): JSX.Element {
  const [parameters] = useUrlParameters<"next" | "signed_in" | "problem">();
  const [provider, setProvider] = createSignal<Provider | null>();
  const navigate = useNavigate();
  onMount(() => {
    document.title = "Log in · Tollgate";
    // Who comes back from the provider has a session that this browser does not know of.
    if (mayHaveSession() || parameters.signed_in !== undefined) tryResumeSession();
    void findProvider().then(setProvider);
  });
  createEffect(() => session() !== undefined && navigate(safeRedirect(parameters.next), { replace: true }));
  return (
    <main class="login">
      <Show when={provider() !== undefined}>
        <LoginForm provider={provider() ?? undefined} next={parameters.next} problem={parameters.problem} />
      </Show>
    </main>
  );
}

/** What the server says in `?problem=`. */
const problems: Readonly<Record<string, string>> = {
  expired: "The sign-in took too long, or was begun elsewhere. Try again.",
  refused: "The provider did not sign you in.",
  no_role: "You are signed in there, but none of your groups may use this console. Ask an administrator.",
  inactive: "An administrator has switched you off.",
  unreachable: "The provider does not answer. Try again later.",
  invalid: "The provider’s answer is not valid. The server’s log says why.",
};

function LoginForm(props: {
  provider: Provider | undefined;
  next: string | undefined;
  problem: string | undefined;
}): JSX.Element {
  const login = createLogin();
  let username: HTMLInputElement | undefined;
  let password: HTMLInputElement | undefined;
  onMount(() => props.provider === undefined && username?.focus());

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const hasSession = await login.submit(username?.value ?? "", password?.value ?? "");
    if (!hasSession) password?.select();
  };

  const Fields = (): JSX.Element => (
    <>
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
      <PasswordInput ref={password} />
      <FormProblem login={login} />
      <button
        class="button wide"
        classList={{ primary: props.provider === undefined }}
        type="submit"
        disabled={login.busy() || login.secondsLeft() > 0}
      >
        {login.busy() ? "Logging in…" : "Log in"}
      </button>
    </>
  );

  return (
    <form onSubmit={(event) => void submit(event)} aria-labelledby="login-title">
      <Logo />
      <h1 id="login-title">Tollgate</h1>
      <Show when={!isSecureContext}>
        <PlainHttpNotice />
      </Show>
      <Show when={props.provider} fallback={<Fields />}>
        {(provider) => (
          <>
            <Show when={problems[props.problem ?? ""]}>
              {(text) => (
                <p class="form-error" role="alert">
                  {text()}
                </p>
              )}
            </Show>
            <a
              class="button primary wide"
              rel="external"
              href={`${provider().url}?${new URLSearchParams({ next: safeRedirect(props.next) })}`}
            >
              Sign in with {provider().name}
            </a>
            <details open={!provider().is_only}>
              <summary>Log in with the password</summary>
              <Fields />
            </details>
          </>
        )}
      </Show>
      <p class="hint">
        The initial password is in the server’s log of its first start. <A href="/me">See the limits of an API key</A>
      </p>
    </form>
  );
}

/** The administrator's. */
export const PasswordInput = (props: Pick<JSX.InputHTMLAttributes<HTMLInputElement>, "ref">): JSX.Element => (
  <LabelledInput
    label="Password"
    class="field"
    ref={props.ref}
    name="password"
    type="password"
    autocomplete="current-password"
    required
  />
);

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
