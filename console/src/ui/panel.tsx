import { createUniqueId, type JSX, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { Button } from "./controls.tsx";

/** The part of a query that a panel needs. */
export interface PanelQuery {
  readonly data: unknown;
  readonly error: unknown;
  readonly isError: boolean;
  readonly isFetching: boolean;
  refetch(): unknown;
}

interface PanelProps {
  title: string;
  /** What the panel shows, unless the page reports its failures: if a refresh fails, the data stay, with a notice. */
  query?: PanelQuery;
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
      <Show when={props.query?.data !== undefined && props.query.isError && props.query}>
        {(query) => (
          <p class="panel-failure" role="status">
            Could not be refreshed: {causeOf(query().error)}. <TryAgain query={query()} />
          </p>
        )}
      </Show>
      {props.children}
    </section>
  );
}

const TryAgain = (props: { query: PanelQuery }): JSX.Element => (
  <Button
    disabled={props.query.isFetching} // A chart would take the press for one on itself.
    onPointerDown={(event) => event.stopPropagation()}
    onClick={() => void props.query.refetch()}
  >
    Try again
  </Button>
);

/** In place of data that could not be loaded. */
export const NotLoaded = (props: { query: PanelQuery }): JSX.Element => (
  <EmptyState title="Could not be loaded">
    <p>{sentence(causeOf(props.query.error))}</p>
    <TryAgain query={props.query} />
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

/** A line of a list of facts, `<dl class="facts">`. */
export const Fact = (props: { name: string; children: JSX.Element }): JSX.Element => (
  <div>
    <dt>{props.name}</dt>
    <dd>{props.children}</dd>
  </div>
);
