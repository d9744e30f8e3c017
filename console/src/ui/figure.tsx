import { type JSX, Show } from "solid-js";
import { Skeleton } from "./skeleton.tsx";

interface FigureProps {
  label: string;
  /** Undefined while it loads. */
  value: string | undefined;
  /** The unrounded value, as a tooltip. */
  exact?: string | undefined;
  note?: JSX.Element;
  /** Whether the value could not be loaded. */
  failed?: boolean;
}

/** A large value with its label above and a note below. Its height does not depend on what it shows. */
export function Figure(props: FigureProps): JSX.Element {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd class="value" title={props.exact}>
        <Show when={props.value} fallback={props.failed ? "–" : <Skeleton />}>
          {props.value}
        </Show>
      </dd>
      <dd class="note">{props.note}</dd>
    </div>
  );
}
