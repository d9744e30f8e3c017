import { For, type JSX, Show } from "solid-js";
import type { Explanation } from "./queries.ts";
import { changeLabel } from "../requests/request-format.ts";

/** The changes of the rewriter to a request, each with its reason. */
export function Edits(props: { explanation: Explanation }): JSX.Element {
  return (
    <Show
      when={props.explanation.refused === null}
      fallback={<p class="form-error">The request would be refused: {props.explanation.refused}.</p>}
    >
      <Show
        when={props.explanation.edits.length > 0}
        fallback={<p>Nothing: the backend would get the body as it is.</p>}
      >
        <ul class="edits">
          <For each={props.explanation.edits}>
            {(edit) => (
              <li>
                <h3>{changeLabel(edit.what)}</h3>
                <p class="hint">{edit.why}</p>
                <p>
                  <code>{edit.from ?? "Not set"}</code> → <code>{edit.to ?? "Removed"}</code>
                </p>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </Show>
  );
}
