import { createUniqueId, type JSX, Show } from "solid-js";
import { causeOf } from "../client.ts";

interface PanelProps {
  title: string;
  hint?: JSX.Element;
  actions?: JSX.Element;
  children: JSX.Element;
}

/** A titled section of a page. */
export function Panel(props: PanelProps): JSX.Element {
  const id = createUniqueId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        <Show when={props.hint}>
          <p class="hint">{props.hint}</p>
        </Show>
        <div class="actions">{props.actions}</div>
      </header>
      {props.children}
    </section>
  );
}

/** In place of data that could not be loaded. */
export const NotLoaded = (props: { error: unknown }): JSX.Element => (
  <EmptyState title="Could not be loaded">
    <p>{sentence(causeOf(props.error))}</p>
  </EmptyState>
);

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`;

/** Why a panel has nothing to show, and the next step. */
export function EmptyState(props: { title: string; children?: JSX.Element }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  );
}
