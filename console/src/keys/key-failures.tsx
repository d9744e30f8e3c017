import { For, type JSX, Show } from "solid-js";
import { plural } from "../lib/format.ts";

export interface KeyFailure {
  name: string;
  cause: string;
}

/** For which keys something failed, and why. */
export const KeyFailures = (props: { failures: readonly KeyFailure[] }): JSX.Element => (
  <Show when={props.failures.length > 0}>
    <div class="key-failures" role="alert">
      <p class="form-error">{plural(props.failures.length, "key")} failed:</p>
      <ul>
        <For each={props.failures}>
          {({ name, cause }) => (
            <li>
              <strong>{name}</strong>: {cause}
            </li>
          )}
        </For>
      </ul>
    </div>
  </Show>
);
