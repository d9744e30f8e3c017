import { type JSX, onMount, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import { Button } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { closeRunningQuestion, runningQuestion, useSwitchKey } from "./key-mutations.ts";

/** After a key was switched off: whether its responses that still run are to end. */
export const RunningQuestion = (): JSX.Element => (
  <Show when={runningQuestion()} keyed>
    {({ key, count }) => {
      const switchKey = useSwitchKey();
      let keep: HTMLButtonElement | undefined;
      onMount(() => keep?.focus());
      return (
        <Dialog title={`End the running responses of “${key.name}”?`} onClose={closeRunningQuestion}>
          <p>
            The key is off.{" "}
            {count === undefined
              ? "Its responses may still run."
              : `${plural(count, "of its responses still runs", "of its responses still run")}.`}{" "}
            If they end now, their clients get an error, and what was seen of them is counted.
          </p>
          <div class="dialog-actions">
            <Button ref={keep} onClick={closeRunningQuestion}>
              Let them finish
            </Button>
            <Button
              tone="danger"
              onClick={() => {
                switchKey.mutate({ key, isActive: false, endRunning: true });
                closeRunningQuestion();
              }}
            >
              End them now
            </Button>
          </div>
        </Dialog>
      );
    }}
  </Show>
);
