import { type JSX, onMount, Show } from "solid-js";
import type { Session } from "../lib/session.ts";
import { queryClient } from "../queries.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { createLogin } from "./login.ts";
import { FormProblem, PasswordInput } from "./login-page.tsx";

/** Asks for a new session above a dialog whose session has ended, so that what was entered there stays. */
export function SessionEndedDialog(props: { of: Session; onLeave: () => void }): JSX.Element {
  return (
    <Dialog title="Your session has ended" persistent onClose={() => {}}>
      <Show
        when={props.of.role !== undefined}
        fallback={<PasswordForm username={props.of.username} onLeave={props.onLeave} />}
      >
        <p>Sign in as {props.of.username} in another tab to go on. What you have entered is kept.</p>
        <div class="dialog-actions">
          <Button onClick={() => props.onLeave()}>Leave</Button>
          <a class="button primary" href="/login" target="_blank">
            Sign in
          </a>
        </div>
      </Show>
    </Dialog>
  );
}

function PasswordForm(props: { username: string; onLeave: () => void }): JSX.Element {
  const login = createLogin();
  let password: HTMLInputElement | undefined;
  onMount(() => password?.focus());
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (await login.submit(props.username, password?.value ?? "")) await queryClient.invalidateQueries();
    else password?.select();
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <p>Log in as {props.username} to go on. What you have entered is kept.</p>
      {/* For password managers. */}
      <input hidden type="text" name="username" autocomplete="username" value={props.username} readonly />
      <PasswordInput ref={password} />
      <FormProblem login={login} />
      <div class="dialog-actions">
        <Button onClick={() => props.onLeave()}>Leave</Button>
        <Button tone="primary" type="submit" disabled={login.busy() || login.secondsLeft() > 0}>
          {login.busy() ? "Logging in…" : "Log in"}
        </Button>
      </div>
    </form>
  );
}
