import { For, type JSX, Show } from "solid-js";
import { count, plural } from "../lib/format.ts";

const shownNames = 8;

/** The first names of a list, and how many there are beside them. */
export function KeyNames(props: { names: readonly string[] }): JSX.Element {
  const rest = (): number => props.names.length - shownNames;
  return (
    <span class="key-names">
      <For each={props.names.slice(0, shownNames)}>
        {(name, index) => (
          <>
            {index() > 0 && ", "}“<bdi>{name}</bdi>”
          </>
        )}
      </For>
      {rest() > 0 ? ` and ${count(rest())} more` : ""}
    </span>
  );
}

interface KeyFailure {
  name: string;
  cause: string;
}

/** Tells for which keys or users something failed, and why. */
export const KeyFailures = (props: { noun: "key" | "user"; failures: readonly KeyFailure[] }): JSX.Element => (
  <Show when={props.failures.length > 0}>
    <div class="key-failures" role="alert">
      <p class="form-error">{plural(props.failures.length, props.noun)} failed:</p>
      <ul>
        <For each={props.failures}>
          {({ name, cause }) => (
            <li>
              <strong>
                <bdi>{name}</bdi>
              </strong>
              : {cause}
            </li>
          )}
        </For>
      </ul>
    </div>
  </Show>
);
