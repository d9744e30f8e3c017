import { type JSX, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { closeRunningQuestion, runningQuestion, useSwitchKey } from "./key-mutations.ts";

/** After a key was switched off: whether its responses that still run are to end. */
export function RunningQuestion(): JSX.Element {
  const switchKey = useSwitchKey();
  return (
    <Show when={runningQuestion()} keyed>
      {({ key, count }) => (
        <ConfirmDialog
          title={`End the running responses of “${key.name}”?`}
          action="End them now"
          onConfirm={() => switchKey.mutate({ key, isActive: false, endRunning: true })}
          cancel="Let them finish"
          onClose={closeRunningQuestion}
        >
          <p>
            The key is off.{" "}
            {count === undefined
              ? "Its responses may still run."
              : `${plural(count, "of its responses still runs", "of its responses still run")}.`}{" "}
            If they end now, their clients get an error, and what was seen of them is counted.
          </p>
        </ConfirmDialog>
      )}
    </Show>
  );
}
