import { For, type JSX, Show } from "solid-js";
import { changeLabel, reasonLabel } from "../requests/request-format.ts";
import type { Explanation } from "./queries.ts";

/** The changes of the rewriter to a request, and what it usually changes and did not, each with its reason. */
export function Edits(props: { explanation: Explanation }): JSX.Element {
  return (
    <Show
      when={props.explanation.refused === null}
      fallback={<p class="form-error">The request would be refused: {props.explanation.refused}.</p>}
    >
      <p>{destinationOf(props.explanation)}</p>
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
      <Show when={props.explanation.kept.length > 0}>
        <ul class="edits">
          <For each={props.explanation.kept}>
            {(kept) => (
              <li>
                <h3>{changeLabel(kept.what)}: not changed</h3>
                <p class="hint">{kept.why}</p>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </Show>
  );
}

/** Which backend it would go to, and why. */
function destinationOf({ model, candidates, goes_to: goesTo }: Explanation): string {
  const named = model === null ? "It" : `Its model is ${model.name}, and it`;
  if (goesTo === null) return `${named} would wait: ${candidates.map(stateText).join(", ")}.`;
  const others = candidates.filter(({ name }) => name !== goesTo.backend);
  const rest = others.length === 0 ? "" : ` The others: ${others.map(stateText).join(", ")}.`;
  return `${named} would go to ${goesTo.backend} now because ${reasonLabel(goesTo.reason)}.${rest}`;
}

const stateText = ({ name, state }: Explanation["candidates"][number]): string => `${name} (${state})`;
