import { type JSX, onMount } from "solid-js";
import { queryClient } from "../queries.ts";
import { Button, LabelledInput } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { createLogin } from "./login.ts";
import { FormProblem } from "./login-page.tsx";

/** Asks for the password above a dialog whose session has ended, so that what was entered there stays. */
export function SessionEndedDialog(props: { username: string; onLeave: () => void }): JSX.Element {
  const login = createLogin();
  let password: HTMLInputElement | undefined;
  onMount(() => password?.focus());
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (await login.submit(props.username, password?.value ?? "")) await queryClient.invalidateQueries();
    else password?.select();
  };
  return (
    <Dialog title="Your session has ended" persistent onClose={() => {}}>
      <form onSubmit={(event) => void submit(event)}>
        <p>Log in as {props.username} to go on. What you have entered is kept.</p>
        {/* For password managers. */}
        <input hidden type="text" name="username" autocomplete="username" value={props.username} readonly />
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
        <div class="dialog-actions">
          <Button onClick={() => props.onLeave()}>Leave</Button>
          <Button tone="primary" type="submit" disabled={login.busy() || login.secondsLeft() > 0}>
            {login.busy() ? "Logging in…" : "Log in"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
